"""Pods are annotated with what their assignment says, against the fake API server."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from numapin_client.errors import ClientError, ConnectionFailedError, ForbiddenError
from numapin_client.resources import Key
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.annotation.comparing import EDIT_SECONDS
from numapin_operator.annotation.denied import DENIED_SECONDS
from numapin_operator.annotation.writer import NO_RIGHT, PodAnnotations
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.annotation import annotation_digest
from numapin_operator.placement import MirrorClaim
from numapin_operator.queues.workqueue import WorkQueue
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.moves import container
from support.values.operator import PLANNED, REPORTED, assignment_view, is_idle, pod_view

AT = "2030-01-01T00:00:31Z"
ONE = Key("a", "default")

DENIED = ForbiddenError(
    "PATCH a", 403, {"reason": "Forbidden", "message": 'user cannot patch resource "pods" in API'}
)
BY_A_WEBHOOK = ForbiddenError(
    "PATCH a", 403, {"reason": "Forbidden", "message": "a webhook says no"}
)


class Scene:
    """One node, whose assignment and pods the test changes."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeCluster(), ManualClock()
        self.woken: list[str] = []
        self.queue = WorkQueue(partial(Backoff, 0.001, 0.01), 0.001, self.clock)
        self.state = ClusterState(self.queue.add)
        self.writer = PodAnnotations(
            self.cluster, self.state, self.woken.append, self.clock, self.queue
        )
        self.state.annotated = self.writer.tell
        self._generation = 1

    def assign(self, *containers: dict[str, Any]) -> None:
        """The assignment has just these containers."""
        self._generation += 1
        made = assignment_view(PLANNED | {"containers": list(containers)}, REPORTED)
        self.state.assignments.put(replace(made, version=100 + self._generation))
        self.writer.tell("node-1")

    def add(self, name: str, **others: Any) -> None:
        """A pod that is bound to the node."""
        self.cluster.pods["default", name] = f"uid-{name}"
        self.state.put_pod(Key(name, "default"), replace(pod_view(name), **others))

    def show(self, name: str, text: str | None) -> None:
        """The watch delivers a pod with this annotation."""
        self.add(name, annotated=annotation_digest(text))

    def deliver(self) -> None:
        """The watch delivers every annotation."""
        for _, name in self.cluster.pods:
            self.show(name, self.cluster.annotations.get(Key(name, "default")))

    async def work(self) -> None:
        """Work until nothing is left to do."""
        workers = [asyncio.create_task(self.writer.work()) for _ in range(2)]
        while not is_idle(self.queue):
            await self.clock.run_tasks()
            if self.queue.state().delayed and not self.queue.state().waiting:
                await self.clock.advance(0.01)
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)

    def said(self, name: str = "a") -> Any:
        """What a pod's annotation says of its container; None if there is none."""
        text = self.cluster.annotations.get(Key(name, "default"))
        return json.loads(text)["containers"]["c0"] if text is not None else None


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.add("a")
    made.add("shares")
    return made


async def test_a_pod_with_exclusive_cpus_is_told_once(scene: Scene) -> None:
    scene.assign(container("a", "2-3"))
    await scene.work()
    assert scene.said() == {"cpus": "2-3", "numaNodes": "0"}
    assert scene.said("shares") is None
    for delivered in (False, True):
        if delivered:
            scene.deliver()
        scene.writer.tell("node-1")
        await scene.work()
        assert scene.cluster.annotation_writes == 1


async def test_what_a_tenant_writes_is_overwritten(scene: Scene) -> None:
    scene.assign(container("a", "2-3"))
    await scene.work()
    scene.deliver()
    for text in ('{"version":1,"containers":{"c0":{"cpus":"0-7"}}}', None, "x" * 100_000):
        scene.cluster.annotations.pop(ONE)
        scene.show("a", text)
        await scene.work()
        assert scene.said() == {"cpus": "2-3", "numaNodes": "0"}
        scene.deliver()
        await scene.work()
    scene.show("shares", "mine")
    scene.cluster.annotations[Key("shares", "default")] = "mine"
    await scene.work()
    assert scene.said("shares") is None


async def test_an_edit_back_to_what_was_before_is_overwritten_too(scene: Scene) -> None:
    """The watch delivers our own write and the edit before the node's turn comes."""
    scene.assign(container("a", "2-3"))
    await scene.work()
    scene.deliver()
    scene.show("a", None)
    scene.cluster.annotations.pop(ONE)
    await scene.work()
    assert scene.said() is not None


async def test_a_tenant_who_edits_in_a_loop_causes_one_write_in_a_while(
    scene: Scene,
) -> None:
    scene.assign(container("a", "2-3"))
    await scene.work()
    scene.deliver()
    await scene.work()
    scene.state.annotated = scene.writer.note_edit
    async with running(scene.writer.work()):
        for number in range(100):
            scene.show("a", f"mine {number}")
            await scene.clock.advance(EDIT_SECONDS / 101)
        assert scene.cluster.annotation_writes == 1
        await scene.clock.advance(EDIT_SECONDS / 50)
        assert scene.cluster.annotation_writes == 2
        scene.show("a", "mine again")
        await scene.clock.advance(EDIT_SECONDS)
        assert scene.cluster.annotation_writes == 3


async def test_a_container_that_leaves_exclusivity_loses_the_annotation(scene: Scene) -> None:
    scene.assign(container("a", "2-3"))
    await scene.work()
    scene.deliver()
    scene.assign()
    await scene.work()
    assert scene.said() is None
    scene.deliver()
    await scene.work()
    assert scene.cluster.annotation_writes == 2


async def test_a_pod_that_is_gone_is_left_alone_and_one_that_fails_keeps_no_other_waiting(
    scene: Scene,
) -> None:
    scene.add("b")
    scene.assign(container("a", "2-3"), container("b", "4"))
    del scene.cluster.pods["default", "a"]
    await scene.work()
    assert (scene.said(), scene.said("b")) == (None, {"cpus": "4", "numaNodes": "0"})
    scene.add("a")
    scene.deliver()
    scene.assign(container("a", "2"), container("b", "5"))
    scene.cluster.failures = [BY_A_WEBHOOK]
    await scene.work()
    assert (scene.said()["cpus"], scene.said("b")["cpus"]) == ("2", "5")


@pytest.mark.parametrize(
    "failure",
    [ConnectionFailedError("PATCH a", "refused"), BY_A_WEBHOOK],
    ids=["outage", "another-refusal"],
)
async def test_a_failure_is_tried_again(scene: Scene, failure: ClientError) -> None:
    scene.cluster.failures = [failure] * 3
    scene.assign(container("a", "2-3"))
    await scene.work()
    assert scene.said()["cpus"] == "2-3"
    assert scene.writer.told("node-1") == {}


async def test_a_missing_right_is_said_once_and_nobody_waits(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.cluster.failures = [DENIED, DENIED]
    scene.assign(container("a", "2-3"))
    workers = [asyncio.create_task(scene.writer.work()) for _ in range(2)]
    await scene.clock.until(lambda: scene.writer.told("node-1") is None)
    while scene.said() is None:
        await scene.clock.advance(DENIED_SECONDS)
        await asyncio.sleep(0.001)
    assert scene.cluster.annotation_writes == 1
    assert caplog.messages.count(NO_RIGHT) == 1
    assert scene.writer.told("node-1") == {}
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)


async def test_since_when_a_pod_knows_what_leaves_it(scene: Scene) -> None:
    scene.assign(container("a", "1-3", moving={"leaving": "1"}))
    await scene.work()
    assert scene.said()["leaving"] == {"cpus": "1"}
    assert (scene.writer.told("node-1"), scene.woken) == ({}, [])
    scene.deliver()
    scene.assign(container("a", "1-3", moving={"leaving": "1", "at": AT}))
    assert scene.writer.told("node-1") == {}
    await scene.work()
    assert scene.said()["leaving"] == {"cpus": "1", "at": AT}
    since = scene.clock.now().timestamp()
    assert (scene.writer.told("node-1"), scene.woken) == ({"uid-a": since}, ["node-1"])
    await scene.clock.advance(5)
    scene.deliver()
    await scene.work()
    assert (scene.writer.told("node-1"), scene.woken) == ({"uid-a": since}, ["node-1"])
    scene.assign(container("a", "2-3", moving={"leaving": "1", "at": AT}))
    await scene.work()
    assert "leaving" not in scene.said()
    assert scene.writer.told("node-1") == {}


async def test_a_new_leader_finds_what_the_last_one_told(scene: Scene) -> None:
    scene.assign(container("a", "1-3", moving={"leaving": "1", "at": AT}))
    await scene.work()
    scene.deliver()
    text = scene.cluster.annotations[ONE]
    later = Scene()
    later.cluster.pods["default", "a"] = "uid-a"
    later.show("a", text)
    later.assign(container("a", "1-3", moving={"leaving": "1", "at": AT}))
    await later.work()
    assert later.cluster.annotation_writes == 0
    assert later.writer.told("node-1") == {"uid-a": later.clock.now().timestamp()}


async def test_the_mirror_of_a_static_pod_is_left_alone(scene: Scene) -> None:
    scene.add("static", mirror=MirrorClaim("uid-static", "node-1", "uid-node-1"))
    scene.assign(container("static", "2-3"))
    await scene.work()
    assert scene.cluster.annotation_writes == 0
