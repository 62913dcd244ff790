"""What others used of exclusive CPUs, from counters that a test sets."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from numapin_enforcer.plan.desired import desire
from numapin_enforcer.telemetry.samples.containers import LEAST_SECONDS, MOST_THREADS, Samples
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters, ThreadTimes
from numapin_enforcer.telemetry.table import (
    CONTAINER_OVERLAP,
    CONTAINER_RUN_DELAY,
    OVERLAP,
    PRESSURE,
    REMOTE_MEMORY,
    RUN_DELAY,
)
from support.fakes.manual_clock import ManualClock
from support.values.specs_and_trees import (
    EXCLUSIVE,
    GUEST,
    NAMES,
    NAMING,
    POD,
    assigned,
    machine,
    spec,
    tree,
)

OWN, OTHER = f"{POD}/{EXCLUSIVE}", f"{POD}/{GUEST}"


@dataclass
class Counters(KernelCounters):
    """Counters as a test sets them; nothing is read."""

    cpus: dict[int, float] = field(default_factory=lambda: dict.fromkeys(range(8), 100.0))
    used: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, list[int]] = field(default_factory=dict)
    delays: dict[int, float] = field(default_factory=dict)
    waited: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    memory: dict[str, dict[int, int]] = field(default_factory=dict)

    def cpu_seconds(self) -> dict[int, float]:
        return dict(self.cpus)

    def cgroup_seconds(self, path: str, cpus: Iterable[int]) -> float | None:
        return self.used.get(path)

    def threads(self, path: str) -> tuple[int, ...]:
        return tuple(self.tasks.get(path, ()))

    def thread_times(self, thread: int) -> ThreadTimes | None:
        found = self.delays.get(thread)
        return None if found is None else ThreadTimes(0.0, found, 1)

    def pressure(self, path: str) -> dict[tuple[str, str], float]:
        return self.waited.get(path, {})

    def numa_bytes(self, path: str) -> dict[int, int]:
        return self.memory.get(path, {})


class World:
    """The exclusive container on CPUs 4 and 5, and samples of it."""

    def __init__(self, *containers: Any, each: bool = True) -> None:
        self.kernel, self.clock = Counters(used={OWN: 10.0}), ManualClock()
        self.samples = Samples(self.kernel, each_container=each, clock=self.clock)
        self.tree = tree(exclusive="4-5")
        one = spec(*(containers or (assigned("exclusive", "4-5", "1"),)))
        self.desired = desire(one, self.tree, NAMING, NAMES, machine())
        self.take()

    def take(self, seconds: float = 10.0) -> None:
        self.clock.stand_still(seconds)
        self.samples.take(self.tree, self.desired)

    def total(self, metric: Any) -> float:
        return self.samples.values()[metric][()]

    def use(self, cpu: int, seconds: float, *, own: bool = False) -> None:
        self.kernel.cpus[cpu] += seconds
        if own:
            self.kernel.used[OWN] += seconds


@pytest.fixture
def world() -> World:
    return World()


def test_a_container_alone_on_its_cpus_has_no_overlap(world: World) -> None:
    world.use(4, 9.0, own=True)
    world.use(1, 9.0)
    world.take()
    assert (world.total(OVERLAP), world.samples.foreign) == (0.0, 0)


def test_a_foreign_task_is_seen_in_one_sample_and_gone_in_the_next(world: World) -> None:
    world.use(4, 4.0, own=True)
    world.use(4, 5.0)
    world.take()
    assert (world.total(OVERLAP), world.samples.foreign) == pytest.approx((5.0, 1))
    world.use(5, 9.0, own=True)
    world.take()
    assert (world.total(OVERLAP), world.samples.foreign) == pytest.approx((5.0, 0))


def test_kernel_threads_are_counted_and_are_no_foreign_task(world: World) -> None:
    world.use(4, 0.2)
    world.take()
    assert (world.total(OVERLAP), world.samples.foreign) == pytest.approx((0.2, 0))


def test_what_is_counted_late_is_set_off_against_what_follows(world: World) -> None:
    world.kernel.used[OWN] += 0.03  # not counted for the CPU yet
    world.take()
    world.use(4, 0.03)
    world.take()
    assert world.total(OVERLAP) == pytest.approx(0.0)


def test_ticks_that_are_never_counted_do_not_hide_a_foreign_task(world: World) -> None:
    for _ in range(100):
        world.kernel.used[OWN] += 1.0
        world.take()
    world.use(4, 5.0)
    world.take()
    assert world.samples.foreign == 1


def test_other_cpus_begin_a_new_count(world: World) -> None:
    world.desired = desire(
        spec(assigned("exclusive", "6-7")), tree(exclusive="6-7"), NAMING, NAMES, machine()
    )
    world.use(6, 50.0)
    world.take()
    assert world.total(OVERLAP) == 0


def test_containers_with_the_same_cpus_are_no_strangers_to_each_other() -> None:
    world = World(assigned("exclusive", "4-5"), assigned("guest", "4-5"))
    world.kernel.used[OTHER] = 0.0
    world.take()
    world.use(4, 3.0, own=True)
    world.use(5, 3.0)
    world.kernel.used[OTHER] += 3.0
    world.take()
    assert world.total(OVERLAP) == 0
    world.use(5, 2.0)
    world.take()
    assert (world.total(OVERLAP), world.samples.foreign) == pytest.approx((2.0, 2))


def test_threads_count_from_their_first_moment_those_of_the_start_excepted(world: World) -> None:
    world.kernel.tasks = {OWN: [7]}
    world.kernel.delays = {7: 0.5}
    world.take()
    assert world.total(RUN_DELAY) == pytest.approx(0.5)
    world.kernel.tasks = {OWN: [7], f"{OWN}/inner": [8]}
    world.kernel.delays = {7: 0.75, 8: 0.25}
    world.take()
    assert world.total(RUN_DELAY) == pytest.approx(1.0)
    world.kernel.delays = {7: 0.125}  # 8 has ended, another thread has its number now
    world.take()
    assert world.total(RUN_DELAY) == pytest.approx(1.125)


def test_the_first_sample_counts_nothing() -> None:
    world = World()
    fresh = Samples(world.kernel, each_container=True, clock=world.clock)
    world.kernel.tasks, world.kernel.delays = {OWN: [7]}, {7: 1000.0}
    fresh.take(world.tree, world.desired)
    assert fresh.values()[RUN_DELAY] == {(): 0.0}


def test_a_container_with_very_many_threads_costs_a_limited_time(world: World) -> None:
    world.kernel.tasks = {OWN: list(range(1, 10 * MOST_THREADS))}
    world.kernel.delays = dict.fromkeys(world.kernel.tasks[OWN], 1.0)
    world.take()
    assert world.total(RUN_DELAY) == pytest.approx(MOST_THREADS)


def test_samples_are_taken_once_in_a_while_however_often_they_are_asked_for(world: World) -> None:
    world.use(4, 3.0)
    world.take(LEAST_SECONDS / 2)
    assert world.total(OVERLAP) == 0
    world.take(LEAST_SECONDS / 2)
    assert world.total(OVERLAP) == pytest.approx(3.0)


def test_pressure_adds_up_over_containers_that_come_and_go(world: World) -> None:
    world.kernel.waited = {OWN: {("cpu", "some"): 1.0}}
    world.take()
    world.kernel.waited = {}
    world.take()
    world.kernel.waited = {OWN: {("cpu", "some"): 0.5}}
    world.take()
    assert world.samples.values()[PRESSURE] == {("cpu", "some"): pytest.approx(1.5)}


def test_memory_on_other_numa_nodes_is_that_of_bound_containers(world: World) -> None:
    world.kernel.memory = {OWN: {0: 4096, 1: 1 << 20}, OTHER: {0: 1 << 30}}
    world.take()
    assert world.total(REMOTE_MEMORY) == 4096


def test_a_container_has_series_of_its_own_while_it_exists(world: World) -> None:
    world.use(4, 5.0)
    world.take()
    name = ("d", "p", "exclusive")
    assert world.samples.values()[CONTAINER_OVERLAP] == {name: pytest.approx(5.0)}
    assert world.samples.values()[CONTAINER_RUN_DELAY] == {name: 0.0}
    world.desired = {path: replace(want, exclusive=False) for path, want in world.desired.items()}
    world.take()
    assert world.samples.values()[CONTAINER_OVERLAP] == {}
    assert world.total(OVERLAP) == pytest.approx(5.0), "what was counted stays"


def test_no_series_names_a_container_unless_that_is_asked_for() -> None:
    values = World(each=False).samples.values()
    assert not [one for one in values if "container" in one.labels]


def test_a_container_that_ends_during_the_sample_is_left_out(world: World) -> None:
    world.kernel.used = {}
    world.use(4, 5.0)
    world.take()
    assert world.total(OVERLAP) == 0
