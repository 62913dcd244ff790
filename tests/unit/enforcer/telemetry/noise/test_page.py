"""The page of exclusive CPUs, from counters that a test sets."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.telemetry.noise import page
from numapin_enforcer.telemetry.noise.look import Looker
from numapin_enforcer.telemetry.noise.page import CpuPage
from numapin_enforcer.telemetry.noise.stat_text import TaskStat
from numapin_enforcer.telemetry.noise.tasks import Task, TaskReader, Tasks
from numapin_enforcer.telemetry.samples.interrupts import Interrupt
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters, ThreadTimes
from support.fakes.manual_clock import ManualClock
from support.values.specs_and_trees import (
    EXCLUSIVE,
    NAMES,
    NAMING,
    POD,
    assigned,
    machine,
    spec,
    tree,
)
from support.values.telemetry.kernel_rows import interrupt

OWN = f"{POD}/{EXCLUSIVE}"


@dataclass
class Counters(KernelCounters):
    """Counters as a test sets them; nothing is read."""

    slices: dict[int, int] = field(default_factory=lambda: {4: 10, 5: 20, 6: 30})

    def cpu_seconds(self) -> dict[int, float]:
        return {4: 1.0, 5: 2.0, 6: 3.0}

    def cgroup_seconds(self, path: str, cpus: Iterable[int]) -> float | None:
        return 0.5 if path == OWN else None

    def threads(self, path: str) -> tuple[int, ...]:
        return (7, 8) if path == OWN else ()

    def thread_times(self, thread: int) -> ThreadTimes | None:
        return ThreadTimes(0.25, 0.125, 9) if thread == 7 else None

    def migrations(self, thread: int) -> int:
        return 2

    def cpu_slices(self) -> dict[int, int]:
        return self.slices

    def interrupts(self, cpus: CpuSet) -> Iterator[Interrupt]:
        yield interrupt("24", "eth0", dict.fromkeys(cpus, 3))


@dataclass
class Found(TaskReader):
    """One task; remembers whose threads do not count."""

    owners: Mapping[int, CpuSet] = field(default_factory=dict)

    def on(self, cpus: CpuSet, owners: Mapping[int, CpuSet]) -> Tasks:
        self.owners = owners
        stat = TaskStat("rcu", is_kernel=True, start_ticks=5, cpu=4)
        return Tasks((Task(11, stat, ThreadTimes(0.5, 0.25, 6)),) if cpus else (), complete=True)


class World:
    def __init__(self) -> None:
        self.kernel, self.clock, self.tasks = Counters(), ManualClock(), Found()
        self.page = CpuPage(Looker(self.kernel, self.tasks), self.clock)

    def end_pass(self) -> None:
        found = tree(exclusive="4-5")
        desired = desire(spec(assigned("exclusive", "4-5")), found, NAMING, NAMES, machine())
        result = Converged(tree=found, desired=desired)
        self.page.passed(Pass(began_seconds=0.0, topology=machine(), result=result), None)

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.page.text())
        return found


@pytest.fixture
def world() -> World:
    return World()


def test_before_a_pass_there_is_nothing(world: World) -> None:
    found = world.read()
    assert (found["containers"], found["cpus"], found["tasks"]) == ([], [], [])


def test_the_counters_of_each_exclusive_cpu_and_container(world: World) -> None:
    world.end_pass()
    found = world.read()
    assert found["cpus"] == [
        {"cpu": 4, "ranSeconds": 1.0, "slices": 10},
        {"cpu": 5, "ranSeconds": 2.0, "slices": 20},
    ]
    (one,) = found["containers"]
    assert (one["pod"], one["container"], one["cpus"]) == ("p", "exclusive", "4-5")
    assert (one["ranSeconds"], one["threads"]) == (0.5, [[7, 0.125, 9, 2]])
    assert found["interrupts"] == [{"number": "24", "name": "eth0", "counts": {"4": 3, "5": 3}}]
    assert [(one["name"], one["cpu"], one["slices"]) for one in found["tasks"]] == [("rcu", 4, 6)]
    assert world.tasks.owners == {7: CpuSet((4, 5)), 8: CpuSet((4, 5))}


@pytest.mark.parametrize(("most", "read"), [(0, []), (1, [7]), (2, [7])])
def test_threads_beyond_the_limit_of_a_page_are_not_read(
    world: World, monkeypatch: pytest.MonkeyPatch, most: int, read: list[int]
) -> None:
    monkeypatch.setattr(page, "MOST_THREADS", most)
    world.end_pass()
    (one,) = world.read()["containers"]
    assert [thread[0] for thread in one["threads"]] == read
    assert one["threadsComplete"] is (most == 2)


def test_what_the_kernel_does_not_count_is_null(world: World) -> None:
    world.end_pass()
    world.kernel.slices = {}
    assert {one["slices"] for one in world.read()["cpus"]} == {None}


def test_a_costly_page_is_answered_again_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = iter([0.0, 0.2, 0.0, 0.2])
    path = "numapin_enforcer.telemetry.noise.page.time.thread_time"
    monkeypatch.setattr(path, lambda: next(spent))
    world.end_pass()
    first = world.read()["takenSeconds"]
    world.clock.stand_still(9.9)
    assert world.read()["takenSeconds"] == first
    world.clock.stand_still(0.2)
    assert world.read()["takenSeconds"] > first
