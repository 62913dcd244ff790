"""Which obstacles there are, and when they stall the node."""

import errno

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupError, CgroupReadOnlyError, CgroupRefusedError
from numapin_enforcer.cgroups.memory.use import MemoryNotBoundError
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.obstacles import (
    PASSES_TO_STALL,
    cgroup_obstacles,
    move_obstacles,
    moving,
)


def failure(name: str, kind: type[CgroupError] = CgroupRefusedError) -> Failure:
    write = Write(name, CpuSet([1]), Step.GRANT)
    return Failure(write, kind(name, "1", errno.EBUSY, "no"))


def test_a_refused_write_stalls_only_after_some_failed_passes() -> None:
    message = "writing '1' to a: no"
    assert cgroup_obstacles((), PASSES_TO_STALL) == ([], [])
    for passes in (0, PASSES_TO_STALL - 1):
        assert cgroup_obstacles((failure("a"),), passes) == (
            [],
            [Obstacle("CgroupWriteFailed", message)],
        )
    obstacle = [Obstacle("CgroupWriteFailed", message)]
    assert cgroup_obstacles((failure("a"),), PASSES_TO_STALL) == (obstacle, [])
    assert PASSES_TO_STALL == 5


def test_a_read_only_tree_stalls_at_once() -> None:
    stalled, working = cgroup_obstacles((failure("a", CgroupReadOnlyError), failure("b")), 0)
    message = "writing '1' to a: no; writing '1' to b: no"
    assert (stalled, working) == ([Obstacle("CgroupsReadOnly", message)], [])


def test_three_of_many_failures_are_shown() -> None:
    _, (three,) = cgroup_obstacles([failure(name) for name in "abc"], 0)
    assert three.message == "; ".join(f"writing '1' to {name}: no" for name in "abc")
    _, (five,) = cgroup_obstacles([failure(name) for name in "abcde"], 0)
    assert five.message == f"{three.message}; and 2 more"


def test_cgroups_whose_memory_is_moved_are_counted() -> None:
    assert moving(()) == []
    writes = [Write(path, MemSet([1]), Step.MOVE_MEMORY) for path in ("a", "a", "b")]
    assert moving(writes) == [Obstacle("Applying", "memory of 2 cgroups is being moved")]


def test_a_container_whose_memory_is_not_bound_is_named_with_the_reason() -> None:
    one = ContainerAssignment(
        pod_uid="1", namespace="shop", pod="db", container="main", mems=MemSet([1])
    )
    desired = {"a": Desired(CpuSet([1]), MemSet([1]), one)}
    failures = [
        Failure(
            Write(path, MemSet([1]), Step.MOVE_MEMORY, may_block=True),
            MemoryNotBoundError(path, MemSet([1]), "it has 800 MiB elsewhere; do this"),
        )
        for path in ("a", "gone")
    ]
    says = "is not bound to NUMA nodes 1: it has 800 MiB elsewhere; do this"
    message = f"container shop/db/main {says}; cgroup gone {says}"
    expected = [Obstacle("MemoryNotBound", message)]
    assert move_obstacles(failures, desired, PASSES_TO_STALL) == ([], expected)
    refused = Obstacle("CgroupWriteFailed", "writing '1' to a: no")
    assert move_obstacles([*failures, failure("a")], desired, 0) == ([], [refused, *expected])
