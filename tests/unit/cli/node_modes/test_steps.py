"""What is done next to release a node, and what is said when nothing happens."""

import pytest

from numapin_cli.node_modes.steps import (
    PATIENCE_SECONDS,
    Step,
    Waited,
    next_step,
    state_of,
    why_stuck,
)
from numapin_operator.observe.assignments.view import AssignmentView
from support.values.operator import PLANNED, assignment_view, condition, enforcer_status

AT = 1_893_456_000  # 2030-01-01T00:00:00Z
ANNOUNCED = assignment_view(PLANNED | {"releaseAt": "2030-01-01T00:00:00Z"}, enforcer_status(1))
IN_FORCE = assignment_view(PLANNED, enforcer_status(1))
GIVEN_UP = assignment_view({"mode": "None"}, enforcer_status(1), generation=2)
RELEASED = assignment_view({"mode": "None"}, enforcer_status(2), generation=2)
PINNED = enforcer_status(2, conditions=[condition("Stalled", True, "KubeletStaticPolicy")])
BY_KUBELET = assignment_view({"mode": "None"}, PINNED, generation=2)
BROKEN = enforcer_status(2, conditions=[condition("Ready", False, "CgroupWriteFailed", "EROFS")])
STALLED = assignment_view({"mode": "None"}, BROKEN, generation=2)
SILENT = enforcer_status(2, conditions=[{**condition("Ready"), "status": "Unknown"}])
DELETED = assignment_view(PLANNED, enforcer_status(1), deleting=True)
EARLY, LATE = PATIENCE_SECONDS / 2, PATIENCE_SECONDS * 2


@pytest.mark.parametrize(
    ("seen", "seconds", "unix", "expected"),
    [
        pytest.param(None, 0, AT, Step.DONE, id="nothing-left"),
        pytest.param(IN_FORCE, EARLY, AT, Step.WAIT, id="the-operator-may-be-slow"),
        pytest.param(IN_FORCE, LATE, AT, Step.GIVE_UP, id="no-operator"),
        pytest.param(ANNOUNCED, LATE, AT - 3600, Step.WAIT, id="announced"),
        pytest.param(ANNOUNCED, LATE, AT + EARLY, Step.WAIT, id="due"),
        pytest.param(ANNOUNCED, LATE, AT + LATE, Step.GIVE_UP, id="the-operator-ended-meanwhile"),
        pytest.param(GIVEN_UP, LATE, AT, Step.WAIT, id="the-enforcer-has-not-answered"),
        pytest.param(STALLED, LATE, AT, Step.WAIT, id="the-enforcer-cannot"),
        pytest.param(RELEASED, EARLY, AT, Step.WAIT, id="the-operator-deletes-it"),
        pytest.param(RELEASED, LATE, AT, Step.DELETE, id="no-operator-deletes-it"),
        pytest.param(BY_KUBELET, LATE, AT, Step.DELETE, id="the-kubelet-pins"),
        pytest.param(DELETED, LATE, AT, Step.WAIT, id="finalizers-of-others"),
    ],
)
def test_the_next_step(
    seen: AssignmentView | None, seconds: float, unix: float, expected: Step
) -> None:
    assert next_step(seen, Waited(seconds, unix)) is expected


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (IN_FORCE, "an operator of an earlier release does not know numapin.io/node-mode"),
        (GIVEN_UP, "its enforcer does not answer"),
        (assignment_view({"mode": "None"}, SILENT, generation=2), "its enforcer does not answer"),
        (STALLED, "not given everything back, CgroupWriteFailed: EROFS"),
        (DELETED, "its NodeAssignment is deleted, and kept by somebody"),
    ],
)
def test_what_keeps_a_node_is_said(seen: AssignmentView, said: str) -> None:
    assert said in why_stuck(seen)


def test_reports_that_come_and_go_are_no_progress() -> None:
    assert state_of(STALLED) == state_of(RELEASED)
    assert state_of(GIVEN_UP) != state_of(RELEASED)
