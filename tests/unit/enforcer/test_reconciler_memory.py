"""Memory is moved only where all writes before it make that safe."""

import pytest

from numapin_api.cpuset import MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.errors import CgroupRefusedError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.reconciler import AssignmentGoal
from support.fakes.reconciler_world import EXCLUSIVE, NAMES, A, World, own
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
    assigned = own("exclusive", "4-7").model_copy(update={"mems": MemSet((1,))})
    goal = AssignmentGoal(spec(assigned), TWO_NODES, NAMES)
    world.model.before_write = refuse
    done = world.reconciler.converge(goal, full_resync=True)
    assert [one.write.path for one in done.failures] == [EXCLUSIVE]
    assert [one for one in done.moves if isinstance(one.value, MemSet)] == []
    world.model.before_write = lambda _: None
    done = world.reconciler.converge(goal, full_resync=True)
    assert f"{EXCLUSIVE}/{A}" in {one.path for one in done.moves if isinstance(one.value, MemSet)}
