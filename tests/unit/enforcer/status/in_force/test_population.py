"""Which exclusive containers have processes, and how often that is asked."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupVanishedError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.in_force.population import (
    RECHECK_SECONDS,
    STARTING_SECONDS,
    Population,
)
from numapin_enforcer.status.in_force.summary import summarize
from support.fakes.worlds.reconciler_world import ALL, A, own
from support.fakes.worlds.reconciler_world import EXCLUSIVE as KERNEL_POD
from support.fakes.worlds.reconciler_world import NAMING as KERNEL_NAMING
from support.fakes.worlds.reconciler_world import World as KernelWorld
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

OWN, INNER = f"{POD}/{EXCLUSIVE}", f"{POD}/{EXCLUSIVE}/inner"
ONE = spec(assigned("exclusive", "6-7"), assigned("guest", "1", exclusive=False))


class World:
    def __init__(self) -> None:
        self.population, self.tree = Population(), tree(exclusive="6-7")
        self.inhabited, self.asked = {OWN}, list[str]()
        self.gone: set[str] = set()
        self.now = 0.0

    def has_tasks(self, path: str) -> bool:
        self.asked.append(path)
        if path in self.gone:
            raise CgroupVanishedError(path, None, 2, "gone")
        return path in self.inhabited

    def update(self, *, resynced: bool = False) -> tuple[set[str], set[str]]:
        """The cgroups that start, and those that are deserted."""
        self.asked.clear()
        wanted = desire(ONE, self.tree, NAMING, NAMES, machine())
        one = self.population
        one.update(self.tree, wanted, self.has_tasks, self.now, resynced=resynced)
        return set(one.starting), set(one.deserted)


@pytest.fixture
def world() -> World:
    return World()


def test_a_container_with_processes_is_looked_at_again_when_it_changed_or_all_was_read(
    world: World,
) -> None:
    assert (world.update(), world.asked) == ((set(), set()), [OWN])
    assert (world.update(), world.asked) == ((set(), set()), [])
    assert (world.update(resynced=True), world.asked) == ((set(), set()), [OWN])
    moved = replace(world.tree.cgroups[OWN], cpus=world.tree.cgroups[POD].cpus)
    world.tree = world.tree.with_changes({OWN: moved})
    assert (world.update(), world.asked) == ((set(), set()), [OWN])
    assert world.population.recheck_seconds is None


def test_a_process_in_a_nested_cgroup_counts(world: World) -> None:
    world.inhabited = {INNER}
    assert world.update() == (set(), set())


@pytest.mark.parametrize("gone", [set[str](), {OWN, INNER}])
def test_a_cgroup_without_processes_starts_and_is_then_deserted(
    world: World, gone: set[str]
) -> None:
    world.inhabited, world.gone = set(), gone
    assert world.update() == ({OWN}, set())
    assert world.population.recheck_seconds == RECHECK_SECONDS
    world.now = STARTING_SECONDS
    assert world.update() == (set(), {OWN})
    assert world.population.recheck_seconds == STARTING_SECONDS / 2
    world.inhabited, world.gone = {OWN}, set()
    assert world.update() == (set(), set())


def test_nothing_is_looked_at_again_without_a_tree(world: World) -> None:
    world.inhabited = set()
    world.update()
    world.population.forget()
    assert world.population.recheck_seconds is None


def test_a_container_whose_last_cpu_was_offline_for_a_moment_is_deserted_on_v1() -> None:
    """The kernel moves its processes into the pod's cgroup, and does not move them back."""
    kernel, wanted = KernelWorld(Version.V1), spec(own("exclusive", "7"), shared="0-6")
    kernel.run(wanted)
    kernel.model.set_online(ALL - CpuSet([7]))
    kernel.model.set_online(ALL)
    done, population = kernel.run(wanted, everything=True), Population()
    assert (done.complete, kernel.cpus(f"{KERNEL_POD}/{A}")) == (True, "7")
    assert done.tree is not None
    for now_seconds in (0.0, STARTING_SECONDS):
        population.update(
            done.tree, done.desired, kernel.model.has_tasks, now_seconds, resynced=False
        )
    evidence = Evidence(deserted=population.deserted)
    summary = summarize(wanted, done.tree, done.desired, KERNEL_NAMING, evidence)
    assert [one.exclusive for one in summary.containers] == [False]
    assert [one.reason for one in summary.lacks] == ["ProcessesElsewhere"]


def test_a_cgroup_that_is_gone_is_forgotten(world: World) -> None:
    world.inhabited = set()
    world.update()
    before, world.tree = world.tree, world.tree.with_changes({OWN: None})
    assert world.update() == (set(), set())
    world.tree, world.now = before, 2 * STARTING_SECONDS
    assert world.update() == ({OWN}, set())
