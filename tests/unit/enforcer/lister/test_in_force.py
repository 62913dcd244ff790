"""What containers have of numapin, as a pass has read it back."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import (
    ContainerAssignment,
    ContainerStatus,
    MemoryBlock,
    NodeAssignmentSpec,
)
from numapin_enforcer.goals import AssignmentGoal, ReleaseGoal
from numapin_enforcer.lister.in_force import Given, InForce, in_force
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.status.in_force.summary import Summary
from support.values.specs_and_trees import assigned, machine, spec

BLOCK = MemoryBlock((1,), "memory", 1 << 30)
BOUND = replace(assigned("c", "2-3", "1"), memory=(BLOCK,))
NAME = ("d", "p", "c")


def enforced(wanted: NodeAssignmentSpec, offline: str = "") -> Pass:
    topology = machine(offline)
    goal = AssignmentGoal(wanted, topology, {}, {}, frozenset())
    return Pass(began_seconds=0.0, topology=topology, spec=wanted, goal=goal)


def has(
    cpus: str = "2-3", mems: str = "1", *, exclusive: bool = True, pod_uid: str = "1"
) -> ContainerStatus:
    sets = CpuSet.parse(cpus), MemSet.parse(mems)
    return ContainerStatus(pod_uid, "c", *sets, exclusive=exclusive)


@pytest.mark.parametrize(
    ("row", "found", "given"),
    [
        pytest.param(BOUND, has(), Given(CpuSet([2, 3]), (BLOCK,)), id="all of it"),
        pytest.param(
            BOUND, has("2"), Given(CpuSet([2]), (BLOCK,)), id="what the kernel has counts"
        ),
        pytest.param(
            BOUND, has(exclusive=False), Given(memory=(BLOCK,)), id="others still have its CPUs"
        ),
        pytest.param(BOUND, has(mems="0-1"), Given(CpuSet([2, 3])), id="not bound yet"),
        pytest.param(
            replace(BOUND, cpus=CpuSet(), exclusive=False),
            has("0-3", exclusive=False),
            Given(memory=(BLOCK,)),
            id="bound, on shared CPUs",
        ),
    ],
)
def test_a_container_has_what_is_in_force(
    row: ContainerAssignment, found: ContainerStatus, given: Given
) -> None:
    ours = in_force(enforced(spec(row)), Summary(containers=(found,)))
    assert ours == InForce(CpuSet(range(1, 8)), {NAME: given})


def test_what_is_assigned_and_does_not_run_is_not_in_force() -> None:
    assert in_force(enforced(spec(BOUND)), Summary()) == InForce(CpuSet(range(1, 8)))


def test_allocatable_are_the_online_cpus_that_are_not_reserved() -> None:
    assert in_force(enforced(spec(), "6-7"), Summary()).allocatable == CpuSet(range(1, 6))


def test_a_pod_made_again_has_what_the_one_before_has_as_well() -> None:
    before = replace(assigned("c", "4"), pod_uid="0")
    found = (has("4", "", pod_uid="0"), has())
    ours = in_force(enforced(spec(before, BOUND)), Summary(containers=found))
    assert ours.given == {NAME: Given(CpuSet([2, 3, 4]), (BLOCK,))}


def test_where_nothing_is_enforced_nothing_is_ours() -> None:
    one = enforced(spec(BOUND))
    summary = Summary(containers=(has(),))
    for other in (
        replace(one, goal=None),
        replace(one, goal=ReleaseGoal(one.topology, {}, keeps_containers=False)),
        enforced(replace(spec(BOUND), pools=None)),
    ):
        assert in_force(other, summary) == InForce()
