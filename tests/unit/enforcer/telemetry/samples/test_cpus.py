"""What runs on exclusive CPUs, from counters that a test sets."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_daemon.telemetry.metric import OTHER, Labels, Metric
from numapin_enforcer.telemetry.samples.cpus import CpuSamples
from numapin_enforcer.telemetry.samples.interrupts import Interrupt
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.telemetry.samples.overlap import ExclusiveContainer
from numapin_enforcer.telemetry.table import (
    CPU_INTERRUPTS,
    CPU_SWITCHES,
    FOREIGN_SWITCHES,
    INTERRUPTS,
    MIGRATIONS,
)
from support.fakes.manual_clock import ManualClock
from support.values.specs_and_trees import assigned
from support.values.telemetry.kernel_rows import interrupt


@dataclass
class Counters(KernelCounters):
    """Counters as a test sets them; nothing is read."""

    slices: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(8), 1000))
    moves: dict[int, int] = field(default_factory=dict)
    came: dict[str, dict[int, int]] = field(default_factory=dict)

    def cpu_slices(self) -> dict[int, int]:
        return dict(self.slices)

    def migrations(self, thread: int) -> int:
        return self.moves.get(thread, 0)

    def interrupts(self, cpus: CpuSet) -> Iterator[Interrupt]:
        for name, counts in self.came.items():
            mine = {cpu: count for cpu, count in counts.items() if cpu in cpus}
            yield interrupt("1", name, mine)


def container(cpus: str, path: str = "c1") -> ExclusiveContainer:
    one: ContainerAssignment = assigned("exclusive", cpus)
    return ExclusiveContainer(path, (), CpuSet.parse(cpus), one)


class World:
    def __init__(self) -> None:
        self.kernel, self.clock = Counters(), ManualClock()
        self.samples = CpuSamples(self.kernel, self.clock)
        self.own: dict[tuple[str, int], int] | None = {("c1", 7): 50}
        self.take(container("4-5"))

    def take(self, *containers: ExclusiveContainer) -> None:
        self.clock.stand_still(1000)
        self.samples.take(containers, self.own)

    def values(self, metric: Metric) -> dict[Labels, float]:
        return dict(self.samples.values()[metric])

    def begin(self, cpu: int, count: int, threads: Iterable[int] = ()) -> None:
        self.kernel.slices[cpu] += count
        assert self.own is not None
        for thread in threads:
            self.own["c1", thread] = self.own.get(("c1", thread), 0) + count


@pytest.fixture
def world() -> World:
    return World()


def test_what_was_counted_before_the_first_sample_is_left_out(world: World) -> None:
    assert world.values(CPU_SWITCHES) == {}
    assert world.values(FOREIGN_SWITCHES) == {(): 0}


def test_switches_of_others_are_those_beyond_the_containers_own(world: World) -> None:
    world.begin(4, 30, threads=[7])
    world.begin(5, 4)
    world.begin(6, 99)  # no exclusive CPU
    world.take(container("4-5"))
    assert world.values(CPU_SWITCHES) == {("4",): 30, ("5",): 4}
    assert world.values(FOREIGN_SWITCHES) == {(): 4}


def test_a_thread_that_began_counts_as_the_containers(world: World) -> None:
    world.begin(4, 30, threads=[8])
    world.take(container("4-5"))
    assert world.values(FOREIGN_SWITCHES) == {(): 0}


def test_with_too_many_threads_nobody_can_say_which_are_foreign(world: World) -> None:
    world.begin(4, 30)
    world.own = None
    world.take(container("4-5"))
    world.own = {("c1", 7): 50}
    world.take(container("4-5"))
    assert world.values(CPU_SWITCHES) == {("4",): 30, ("5",): 0}
    assert world.values(FOREIGN_SWITCHES) == {(): 0}


def test_a_cpu_counts_from_when_it_is_exclusive_and_is_forgotten_after(world: World) -> None:
    world.kernel.came = {"eth0": {6: 5_000}}
    world.begin(6, 77)
    world.take(container("4-6"))
    assert world.values(CPU_SWITCHES)["6",] == 0
    assert world.values(INTERRUPTS) == {}
    world.begin(6, 2)
    world.kernel.came["eth0"][6] += 3
    world.take(container("4-6"))
    assert world.values(CPU_SWITCHES)["6",] == 2
    assert world.values(INTERRUPTS) == {("eth0",): 3}
    assert world.values(CPU_INTERRUPTS) == {("6",): 3}
    world.take(container("4-5"))
    assert world.values(CPU_SWITCHES).keys() == {("4",), ("5",)}
    assert world.values(CPU_INTERRUPTS) == {}


def test_a_first_interrupt_of_a_name_is_counted(world: World) -> None:
    world.kernel.came = {"eth0": {4: 1, 5: 2}}
    world.take(container("4-5"))
    assert world.values(INTERRUPTS) == {("eth0",): 3}


def test_names_beyond_the_limit_are_counted_together(world: World) -> None:
    most = INTERRUPTS.most_series
    world.kernel.came = {f"queue-{number}": {4: 1} for number in range(3 * most)}
    world.take(container("4-5"))
    found = world.values(INTERRUPTS)
    assert len(found) == most
    assert found[OTHER,] == 2 * most + 1
    assert sum(found.values()) == 3 * most


def test_migrations_of_all_threads(world: World) -> None:
    world.kernel.moves = {7: 3, 99: 1000}
    world.take(container("4-5"))
    assert world.values(MIGRATIONS) == {(): 3}


def test_a_kernel_without_schedstats_counts_no_switches(world: World) -> None:
    world.kernel.slices = {}
    world.take(container("4-5"))
    assert world.values(CPU_SWITCHES) == {}
    assert world.values(FOREIGN_SWITCHES) == {}


def test_costly_samples_are_taken_less_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter([0.0, 0.05])
    path = "numapin_enforcer.telemetry.samples.cpus.time.thread_time"
    monkeypatch.setattr(path, lambda: next(spent))
    world.take(container("4-5"))
    world.begin(4, 5)
    world.clock.stand_still(9.9)
    world.samples.take([container("4-5")], world.own)
    assert world.values(CPU_SWITCHES)["4",] == 0
    world.clock.stand_still(0.2)
    spent = iter([0.0, 0.0])
    world.samples.take([container("4-5")], world.own)
    assert world.values(CPU_SWITCHES)["4",] == 5
