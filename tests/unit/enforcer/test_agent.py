"""The loop on a manual clock, over a model of the kernel."""

import asyncio
import itertools
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.agent import ACCEPTED, RETRY_SECONDS, SEARCH_SECONDS, Agent
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.schedule import CPU_SHARE
from support.fakes.manual_clock import ManualClock
from support.fakes.watched_kernel import ModelWatch, WatchedModel

MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)
POD, CONTAINER = "kubepods/podexclusive", f"kubepods/podexclusive/{'a' * 64}"
BODY: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u1", "generation": 1},
    "spec": {
        "pools": {"reserved": "0", "shared": "0-2"},
        "containers": [
            {
                "podUID": "exclusive",
                "namespace": "d",
                "pod": "p",
                "container": "c",
                "cpus": "3",
                "exclusive": True,
            }
        ],
    },
}


class Events:
    """The watch's descriptor: readable from the first event on, as if they never ended."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self.reads, self.matter = descriptor, 0, True
        self.appeared: tuple[str, ...] = ()

    def fileno(self) -> int:
        return self._descriptor

    def begin(self) -> None:
        os.eventfd_write(self._descriptor, 1)

    def collect(self) -> bool:
        self.reads += 1
        return self.matter


class KubepodsFinder:
    """The kubelet's cgroups, which exist while `is_there` is set."""

    def __init__(self, model: WatchedModel, watch: Events) -> None:
        snapshot = TreeCache(model, ModelWatch(model))
        self._tree = SimpleNamespace(
            naming=CgroupNaming(Driver.CGROUPFS), files=model, snapshot=snapshot, watch=watch
        )
        self.is_there, self.tree = True, cast("Any", None)

    def open(self) -> Any:
        self.tree = self._tree if self.is_there else None
        return self.tree

    def close(self) -> None:
        self.tree = None


class Background:
    """Names the one container; remembers the specs that it was updated for."""

    def __init__(self) -> None:
        self.names = SimpleNamespace(known={"a" * 64: "c"})
        self.names_complete = True
        self.specs: list[Any] = []
        self.calls: list[str] = []

    def update(self, spec: Any, _pods: Any, _done: Any, *, full_resync: bool) -> None:
        self.specs.append(spec)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self.calls.append(name)


class World:
    """An agent, its fakes and a model of the kernel."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        self.model = WatchedModel(Version.V2, CpuSet(range(4)), MemSet((0,)))
        for path in (POD, CONTAINER):
            self.model.make(path)
        self.model.enter(CONTAINER)
        self.events, self.background = Events(descriptor), Background()
        self.kubepods = KubepodsFinder(self.model, self.events)
        self.assignments = SimpleNamespace(body=BODY, gone=False)
        self.saved: list[Any] = []
        self.results: list[Any] = []
        self.failures: list[Any] = []
        self.clock, self.wake = ManualClock(), asyncio.Event()
        reporter = SimpleNamespace(
            resume=lambda _: None,
            health=SimpleNamespace(outdated=""),
            report=lambda result, *_: self.results.append(result),
            failed=self.failures.append,
            recheck_seconds=None,
        )
        self.reporter = reporter
        machine = SimpleNamespace(topology=MACHINE, rescan=lambda: False)
        self.agent = Agent(
            cast("Any", self.assignments),
            Acceptance("n"),
            cast("Any", SimpleNamespace(want=self.saved.append)),
            cast("Any", machine),
            cast("Any", self.kubepods),
            cast("Any", self.background),
            cast("Any", reporter),
            self.wake,
            folder,
            10.0,
            self.clock,
        )

    @property
    def cpus(self) -> str:
        return str(self.model.read().cgroups[CONTAINER].effective_cpus)


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = os.eventfd(0)
    yield made
    os.close(made)


@pytest.fixture
async def world(descriptor: int, tmp_path: Path) -> AsyncIterator[World]:
    made = World(descriptor, tmp_path)
    task = asyncio.create_task(made.agent.run())
    await made.clock.run_tasks()
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_accepted_assignment_is_enforced_and_saved(world: World) -> None:
    assert world.cpus == "3"
    assert [one.spec.containers[0].cpus for one in world.saved] == [CpuSet([3])]


async def test_an_accepted_assignment_is_logged_with_its_generation(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.assignments.body = {**BODY, "metadata": {**BODY["metadata"], "generation": 2}}
    with caplog.at_level(logging.INFO):
        world.wake.set()
        await world.clock.run_tasks()
    logged = [(one.msg, vars(one).get("generation")) for one in caplog.records]
    assert (ACCEPTED, 2) in logged


async def test_a_pass_comes_with_each_event_and_each_resync(world: World) -> None:
    world.wake.set()
    await world.clock.run_tasks()
    assert len(world.results) == 2
    await world.clock.advance(9.9)
    assert len(world.results) == 2
    await world.clock.advance(0.2)
    assert len(world.results) == 3


async def test_a_pass_comes_when_the_report_must_be_checked_again(world: World) -> None:
    world.reporter.recheck_seconds = 0.02
    world.wake.set()
    await world.clock.run_tasks()
    passes = len(world.results)
    world.reporter.recheck_seconds = None
    await world.clock.advance(0.02)
    assert len(world.results) == passes + 1


async def test_missing_cgroups_are_searched_for(world: World) -> None:
    world.kubepods.is_there = False
    world.model.vanish("kubepods")
    world.wake.set()
    await world.clock.run_tasks()
    assert world.kubepods.tree is None
    passes = len(world.results)
    await world.clock.advance(SEARCH_SECONDS)
    assert len(world.results) == passes + 1


async def test_an_assignment_of_mode_none_is_released_once(world: World) -> None:
    released = {**BODY, "metadata": {**BODY["metadata"], "generation": 2}, "spec": {"mode": "None"}}
    world.assignments.body = released
    for _ in range(3):
        world.wake.set()
        await world.clock.run_tasks()
    assert world.cpus == "0-3"
    assert world.background.specs[-1] is None
    assert world.background.calls.count("clear_slices") == 1
    assert "restore_quotas" in world.background.calls


async def test_a_static_kubelet_is_left_alone(world: World) -> None:
    state = world.agent.kubelet_state_dir / "cpu_manager_state"
    state.write_text('{"policyName": "static", "defaultCpuSet": "0-3", "checksum": 1}')
    updates = len(world.background.specs)
    await world.clock.advance(10)
    assert world.results[-1].conflict
    assert len(world.background.specs) == updates
    assert "pause" in world.background.calls


async def test_while_the_loop_rests_no_event_is_read_and_none_wakes_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop must not spin while the descriptor is readable.

    Each pass takes 10 s of CPU time; so do each read of events, and the fence of new cgroups.
    """
    spent = itertools.count(0.0, 10.0)
    monkeypatch.setattr(time, "thread_time", lambda: next(spent))
    world.events.begin()
    await world.clock.run_tasks()
    passes, reads = len(world.results), world.events.reads
    await world.clock.run_tasks()
    assert (passes, reads) == (2, 1)
    assert (len(world.results), world.events.reads) == (2, 1)
    assert not world.wake.is_set()
    await world.clock.advance(20 / CPU_SHARE)
    assert (len(world.results), world.events.reads) == (2, 1)
    await world.clock.advance(10 / CPU_SHARE)
    assert (len(world.results), world.events.reads) == (3, 2)


async def test_events_that_do_not_matter_make_no_pass(world: World) -> None:
    world.events.matter = False
    world.events.begin()
    await world.clock.run_tasks()
    assert world.events.reads > 0
    assert len(world.results) == 1


@pytest.mark.parametrize("error", [RecursionError("deep"), OSError(36, "long"), KeyError("x")])
async def test_an_unexpected_error_is_reported_and_the_next_pass_starts_from_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(world.agent, "_enforce", fail)
        world.wake.set()
        await world.clock.run_tasks()
        assert [one.reason for one in world.failures] == ["InternalError"]
        assert world.kubepods.tree is None
    world.model.write(Write(CONTAINER, CpuSet(range(4)), Step.PREPARE))
    await world.clock.advance(RETRY_SECONDS)
    assert (len(world.failures), world.cpus) == (1, "3")


async def test_a_new_pod_is_kept_off_exclusive_cpus_before_the_loop_plans_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.wake.set()
    await world.clock.run_tasks()
    passes = len(world.results)
    monkeypatch.setattr(world.agent, "_supervised_pass", lambda: None)
    world.model.make("kubepods/podnew")
    world.events.appeared = ("kubepods/podnew",)
    world.events.begin()
    await world.clock.run_tasks()
    assert len(world.results) == passes
    assert str(world.model.read().cgroups["kubepods/podnew"].effective_cpus) == "0-2"


async def test_everything_is_released_once_the_assignment_is_gone(world: World) -> None:
    world.assignments.body = None
    world.wake.set()
    await world.clock.run_tasks()
    assert world.cpus == "3"
    world.assignments.gone = True
    for _ in range(2):
        world.wake.set()
        await world.clock.run_tasks()
    assert world.cpus == "0-3"
    assert world.saved[-1].spec.mode == "None"
    world.assignments.body, world.assignments.gone = BODY, False
    world.wake.set()
    await world.clock.run_tasks()
    assert world.cpus == "3"
