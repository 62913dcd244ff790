"""What a pass says of itself."""

import errno
from dataclasses import replace

import pytest

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupError, CgroupReadOnlyError
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.passes.enforcing import goal_of
from support.values.specs_and_trees import POD, assigned, machine, spec, tree

SPEC, NONE = spec(assigned("exclusive", "4-5")), NodeAssignmentSpec(mode="None")
WRITE = Write(POD, CpuSet((0,)), Step.NARROW)
UNREADABLE = Obstacle("CgroupsUnreadable", "no")
BEGUN = Pass(began_seconds=0.0, topology=machine(), failed_before=2, full_resync=True)


def refused(kind: type[CgroupError]) -> Converged:
    error = kind(POD, "0", errno.EROFS, "refused")
    return Converged(tree(), failures=(Failure(WRITE, error),))


@pytest.mark.parametrize(
    ("accepted", "conflict", "pins_cpus", "holding", "goal"),
    [
        (None, "", False, True, "none, left alone"),
        (SPEC, "", False, False, "enforced"),
        (SPEC, "memory manager", False, True, "none, left alone"),
        (SPEC, "CPU manager", True, True, "none, left alone"),
        (NONE, "", False, False, "none"),
        (NONE, "", False, True, "released"),
        (NONE, "memory manager", False, True, "none"),
        (NONE, "CPU manager", True, True, "released, rests"),
    ],
)
def test_the_goal_follows_from_what_was_accepted_and_what_the_kubelet_pins(
    accepted: NodeAssignmentSpec | None,
    conflict: str,
    *,
    pins_cpus: bool,
    holding: bool,
    goal: str,
) -> None:
    one = replace(BEGUN, spec=accepted, conflict=conflict, pins_cpus=pins_cpus)
    one = replace(one, goal=goal_of(one, holding=holding), result=Converged(tree()))
    said = ["none" if one.goal is None else "enforced" if one.enforced else "released"]
    said += ["left alone"] if one.left_alone else []
    said += ["rests"] if one.rests and one.goal is not None else []
    assert ", ".join(said) == goal
    assert one.released == (said[0] == "released")


@pytest.mark.parametrize(
    ("one", "failed_passes", "in_vain"),
    [
        (replace(BEGUN, result=Converged(tree())), 0, False),
        (replace(BEGUN, result=Converged(tree(), complete=False)), 3, False),
        (replace(BEGUN, unreadable=UNREADABLE), 3, True),
        (replace(BEGUN, result=refused(CgroupError)), 3, False),
        (replace(BEGUN, result=refused(CgroupReadOnlyError)), 3, True),
        (replace(BEGUN, result=replace(refused(CgroupReadOnlyError), made=(WRITE,))), 3, False),
    ],
)
def test_a_pass_has_failed_or_done_nothing(one: Pass, failed_passes: int, *, in_vain: bool) -> None:
    assert (one.failed_passes, one.in_vain) == (failed_passes, in_vain)
    assert one.resynced == (one.unreadable is None)
