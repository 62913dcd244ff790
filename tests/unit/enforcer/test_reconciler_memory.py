"""Memory is moved only where all writes before it make that safe."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.goals import AssignmentGoal, ReleaseGoal
from numapin_enforcer.plan.containment import restored_mems
from support.fakes.worlds.reconciler_world import EXCLUSIVE, NAMES, A, C, World, own
from support.values.specs_and_trees import spec

TWO_NODES = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, cpu // 4) for cpu in range(8)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)


@pytest.mark.parametrize("version", list(Version), ids=["v1", "v2"])
def test_memory_is_not_moved_where_a_failed_write_makes_it_unsafe(version: Version) -> None:
    def refuse(write: Write) -> None:
        if write.path == EXCLUSIVE and isinstance(write.value, MemSet):
            raise CgroupRefusedError(write.path, str(write.value), 16, "busy")

    world = World(version, MemSet((0, 1)))
    for path in (f"{EXCLUSIVE}/{A}", EXCLUSIVE):
        world.model.write(Write(path, MemSet((0,)), Step.MOVE_MEMORY))
    assigned = replace(own("exclusive", "4-7"), mems=MemSet((1,)))
    goal = AssignmentGoal(spec(assigned), TWO_NODES, NAMES)
    world.model.before_write = refuse
    done = world.reconciler.converge(goal, full_resync=True)
    assert [one.write.path for one in done.failures] == [EXCLUSIVE]
    assert [one for one in done.moves if isinstance(one.value, MemSet)] == []
    world.model.before_write = lambda _: None
    done = world.reconciler.converge(goal, full_resync=True)
    assert f"{EXCLUSIVE}/{A}" in {one.path for one in done.moves if isinstance(one.value, MemSet)}


WITH_GPU = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(8)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30, on_device=True)),
)
VERSIONS = pytest.mark.parametrize("version", list(Version), ids=["v1", "v2"])


def mems(world: World) -> dict[str, str]:
    return {path: str(one.effective_mems) for path, one in world.model.read().cgroups.items()}


def written_mems(world: World) -> list[Write]:
    """What is written to `cpuset.mems` from now on."""
    writes: list[Write] = []

    def note(write: Write) -> None:
        if not isinstance(write.value, CpuSet):
            writes.append(write)

    world.model.after_write = note
    return writes


@VERSIONS
def test_a_policy_of_cpus_takes_the_numa_node_of_a_gpu_from_no_pod(version: Version) -> None:
    world = World(version, MemSet((0, 1)))
    writes = written_mems(world)
    goal = AssignmentGoal(spec(own("exclusive", "4-7")), WITH_GPU, NAMES)
    done = world.reconciler.converge(goal, full_resync=True)
    assert (done.complete, done.moves, writes) == (True, (), [])


@VERSIONS
def test_numa_nodes_that_an_administrator_took_from_kubepods_stay_so(version: Version) -> None:
    world = World(version, MemSet((0, 1)))
    for path in reversed(world.model.groups):
        world.model.write(Write(path, MemSet((1,)), Step.PREPARE))
    writes = written_mems(world)
    one = spec(own("exclusive", "4-7"))
    done = world.reconciler.converge(AssignmentGoal(one, TWO_NODES, NAMES), full_resync=True)
    assert (done.moves, writes) == ((), [])
    released = world.reconciler.converge(ReleaseGoal(TWO_NODES), full_resync=True)
    assert (released.moves, writes) == ((), [])
    assert set(mems(world).values()) == {"1"}


@VERSIONS
def test_a_container_that_is_bound_no_longer_gets_back_what_it_had(version: Version) -> None:
    world, path = World(version, MemSet((0, 1))), f"{EXCLUSIVE}/{A}"
    before = mems(world)
    found = {path: world.model.groups[path].mems}
    bound = replace(own("exclusive", "4-7"), mems=MemSet((1,)))
    goal = AssignmentGoal(spec(bound), TWO_NODES, NAMES)
    done = world.reconciler.converge(goal, full_resync=True)
    for write in done.moves:
        world.model.write(write)
    assert mems(world) == {**before, path: "1"}
    goal = AssignmentGoal(spec(own("exclusive", "4-7")), TWO_NODES, NAMES, found)
    done = world.reconciler.converge(goal, full_resync=True)
    assert done.moves == ()
    assert mems(world) == before
    assert done.tree is not None
    assert restored_mems(done.tree, done.desired, found) == {path}


@VERSIONS
def test_what_a_container_had_is_kept_while_its_name_is_awaited(version: Version) -> None:
    """It is bound already: only it can be the container that the spec binds."""
    world, path = World(version, MemSet((0, 1))), f"{EXCLUSIVE}/{A}"
    world.start(f"{EXCLUSIVE}/{C}")
    found = {path: world.model.groups[path].mems}
    bound = replace(own("exclusive", "4-7"), mems=MemSet((1,)))
    goal = AssignmentGoal(spec(bound), TWO_NODES, {C: "sandbox"}, found)
    done = world.reconciler.converge(goal, full_resync=True)
    for write in done.moves:
        world.model.write(write)
    assert mems(world)[path] == "1"
    done = world.reconciler.converge(goal, full_resync=True)
    assert done.tree is not None
    assert done.desired[path].container is None
    assert restored_mems(done.tree, done.desired, found) == frozenset()


@VERSIONS
def test_numa_nodes_that_others_gave_a_container_stay(version: Version) -> None:
    """Only what numapin has bound is restored, which `found_mems` says."""
    world, path = World(version, MemSet((0, 1))), f"{EXCLUSIVE}/{A}"
    world.model.write(Write(path, MemSet((0,)), Step.PREPARE))
    goal = AssignmentGoal(spec(own("exclusive", "4-7")), TWO_NODES, NAMES)
    assert world.reconciler.converge(goal, full_resync=True).moves == ()
    assert mems(world)[path] == "0"


def test_on_v1_a_new_cgroup_without_numa_nodes_gets_those_of_its_parent() -> None:
    world = World(Version.V1, MemSet((0, 1)))
    world.model.make(f"{EXCLUSIVE}/{C}")
    goal = AssignmentGoal(spec(own("exclusive", "4-7")), WITH_GPU, NAMES)
    world.reconciler.converge(goal, full_resync=True)
    assert mems(world)[f"{EXCLUSIVE}/{C}"] == "0-1"
