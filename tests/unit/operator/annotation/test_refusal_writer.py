"""Refused pods are told so, and not longer than they are, against the fake API server."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from numapin_client.errors import ClientError, ConnectionFailedError, ForbiddenError
from numapin_client.resources import Key
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.annotation.comparing import EDIT_SECONDS
from numapin_operator.annotation.denied import DENIED_SECONDS
from numapin_operator.annotation.refusal_writer import (
    AT_ONCE,
    NO_RIGHT,
    WRITES_PER_SECOND,
    RefusalAnnotations,
)
from numapin_operator.annotation.refusals import LONGEST, refusals
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.pods.annotation import refusal_mark, refused_annotation
from numapin_operator.placement import MirrorClaim
from numapin_operator.queues.workqueue import WorkQueue
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.values.moves import container
from support.values.operator import PLANNED, REPORTED, assignment_view, is_idle, pod_view

NUMBERS = "wanted 4 CPUs, 2 free: 6-7; up to 2 CPUs would fit"
SAID = f"NotEnoughCPUs: container main: {NUMBERS}"
DENIED = ForbiddenError(
    "PATCH a", 403, {"reason": "Forbidden", "message": 'user cannot patch resource "pods" in API'}
)
BY_A_WEBHOOK = ForbiddenError(
    "PATCH a", 403, {"reason": "Forbidden", "message": "a webhook says no"}
)


def refusal(pod: str, reason: str = "NotEnoughCPUs", message: str = NUMBERS) -> dict[str, Any]:
    about = {"podUID": f"uid-{pod}", "namespace": "default", "pod": pod, "container": "main"}
    return about | {"reason": reason, "message": message}


class Scene:
    """One node, whose assignment and pods the test changes."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeCluster(), ManualClock()
        self.queue = WorkQueue(partial(Backoff, 0.001, 0.01), 0.001, self.clock)
        self.state = ClusterState()
        self.writer = RefusalAnnotations(self.cluster, self.state, self.clock, self.queue)
        self._generation = 1

    def assign(self, *refused: dict[str, Any], placed: tuple[str, ...] = ()) -> None:
        """The assignment refuses just these, and has containers of the placed pods."""
        self._generation += 1
        containers = [container(name, "2") for name in placed]
        made = assignment_view(
            PLANNED | {"containers": containers, "refused": list(refused)}, REPORTED
        )
        self.state.assignments.put(replace(made, version=100 + self._generation))
        self.writer.tell("node-1")

    def add(self, name: str, **others: Any) -> None:
        self.cluster.pods["default", name] = f"uid-{name}"
        self.state.put_pod(Key(name, "default"), replace(pod_view(name), **others))

    def deliver(self) -> None:
        """The watch delivers every annotation."""
        for _, name in self.cluster.pods:
            self.add(name, told=refusal_mark(self.said(name)))

    async def work(self) -> None:
        workers = [asyncio.create_task(self.writer.work()) for _ in range(2)]
        while not is_idle(self.queue):
            await self.clock.run_tasks()
            if self.queue.state().delayed and not self.queue.state().waiting:
                await self.clock.advance(0.01)
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)

    def said(self, name: str = "a") -> str | None:
        return self.cluster.refused_pods.get(Key(name, "default"))


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.add("a")
    made.add("b")
    return made


async def test_a_refused_pod_is_told_once_with_the_numbers(scene: Scene) -> None:
    scene.assign(refusal("a"), refusal("a", message="of the second container"), placed=("b",))
    await scene.work()
    assert (scene.said(), scene.said("b")) == (SAID, None)
    for delivered in (False, True):
        if delivered:
            scene.deliver()
        scene.writer.tell("node-1")
        await scene.work()
    assert scene.cluster.annotation_writes == 1


async def test_pods_that_are_placed_cost_nothing(scene: Scene) -> None:
    scene.assign(placed=("a", "b"))
    assert is_idle(scene.queue), "their node does not even wait"
    assert scene.cluster.annotation_writes == 0


async def test_other_numbers_are_no_reason_to_write_and_another_reason_is(scene: Scene) -> None:
    scene.assign(refusal("a"))
    await scene.work()
    scene.deliver()
    scene.assign(refusal("a", message="wanted 4 CPUs, 3 free: 5-7"))
    await scene.work()
    assert scene.said() == SAID
    scene.assign(refusal("a", "TopologyAffinityError", "no NUMA node has 4"))
    await scene.work()
    assert scene.said() == "TopologyAffinityError: container main: no NUMA node has 4"
    assert scene.cluster.annotation_writes == 2


async def test_it_goes_when_the_pod_is_placed_later(scene: Scene) -> None:
    scene.assign(refusal("a"))
    await scene.work()
    scene.deliver()
    scene.assign(placed=("a",))
    await scene.work()
    assert scene.said() is None


async def test_a_new_leader_finds_what_the_last_one_told(scene: Scene) -> None:
    scene.add("a", told=refusal_mark(SAID))
    scene.add("b", told=refusal_mark("NotEnoughMemory: of an assignment that is gone"))
    said = {"a": SAID, "b": "NotEnoughMemory: x"}
    scene.cluster.refused_pods = {Key(name, "default"): text for name, text in said.items()}
    scene.assign(refusal("a"))
    await scene.work()
    assert (scene.said(), scene.said("b")) == (SAID, None)
    assert scene.cluster.annotation_writes == 1


async def test_what_a_tenant_writes_is_replaced_a_little_later(scene: Scene) -> None:
    scene.assign(refusal("a"))
    await scene.work()
    scene.deliver()
    scene.cluster.refused_pods[Key("a", "default")] = "all is well"
    scene.add("a", told=refusal_mark("all is well"))
    for _ in range(20):
        scene.writer.note_edit("node-1")
    await scene.work()
    assert scene.said() == "all is well", "not at once"
    worker = asyncio.create_task(scene.writer.work())
    await scene.clock.advance(EDIT_SECONDS)
    worker.cancel()
    assert scene.said() == SAID
    assert scene.cluster.annotation_writes == 2


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"terminal": True}, id="ended"),
        pytest.param({"deleting": True}, id="deleting"),
        pytest.param({"mirror": MirrorClaim("hash", "node", "uid")}, id="static"),
    ],
)
async def test_some_pods_are_told_nothing(scene: Scene, others: dict[str, Any]) -> None:
    scene.add("a", **others)
    scene.assign(refusal("a"))
    await scene.work()
    assert scene.cluster.annotation_writes == 0


async def test_a_flood_of_refusals_is_written_at_a_limited_pace(scene: Scene) -> None:
    names = [f"p{number:04}" for number in range(AT_ONCE + 40)]
    for name in names:
        scene.add(name)
    began = scene.clock.monotonic()
    scene.assign(*map(refusal, names))
    worker = asyncio.create_task(scene.writer.work())
    await scene.clock.run_tasks()
    assert len(scene.cluster.refused_pods) == AT_ONCE
    while len(scene.cluster.refused_pods) < len(names):
        await scene.clock.advance(1 / WRITES_PER_SECOND)
    worker.cancel()
    assert scene.clock.monotonic() - began >= 39 / WRITES_PER_SECOND


@pytest.mark.parametrize("failure", [BY_A_WEBHOOK, ConnectionFailedError("PATCH", "refused")])
async def test_a_failure_is_tried_again(scene: Scene, failure: ClientError) -> None:
    scene.cluster.failures = [failure]
    scene.assign(refusal("a"), refusal("b"))
    await scene.work()
    assert (scene.said(), scene.said("b")) == (SAID, SAID)


async def test_without_the_right_it_says_so_once_and_tries_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.cluster.failures = [DENIED, DENIED]
    began = scene.clock.monotonic()
    scene.assign(refusal("a"))
    worker = asyncio.create_task(scene.writer.work())
    for _ in range(30):
        await scene.clock.advance(DENIED_SECONDS / 10)
    worker.cancel()
    assert scene.said() == SAID
    assert scene.clock.monotonic() - began >= 2 * DENIED_SECONDS
    assert caplog.text.count(NO_RIGHT) == 1


def test_the_text_is_short() -> None:
    made = assignment_view(PLANNED | {"refused": [refusal("a", message="x" * 1000)]}, REPORTED)
    assert len(refusals(made.spec)["uid-a"]) <= LONGEST


@pytest.mark.parametrize(
    ("annotations", "mark"),
    [
        (None, ""),
        ({"numapin.io/refused": SAID}, "NotEnoughCPUs"),
        ({"numapin.io/refused": "no colon"}, "no colon"),
        ({"numapin.io/refused": ""}, "?"),
        ({"numapin.io/refused": 7}, ""),
        ({"numapin.io/refused": "x" * 100_000}, "x" * 64),
    ],
)
def test_what_is_compared_is_short_whatever_a_tenant_writes(annotations: Any, mark: str) -> None:
    assert refused_annotation({"annotations": annotations}) == mark
