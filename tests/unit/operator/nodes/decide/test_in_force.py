"""When a policy counts as in force on a node, and which nodes it does not wait for."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.nodes.decide.decision import NOTHING, Moment
from numapin_operator.nodes.decide.waits import ENFORCER_SECONDS, with_times
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView
from numapin_operator.policies.rollout import Turn
from numapin_operator.policies.status import NodeOutcome, Phase, waiting
from numapin_operator.policies.tally import Tally
from support.values.operator import (
    PLANNED,
    POLICY,
    assignment_view,
    condition,
    enforcer_status,
    node_view,
    picture,
    pod_view,
    policy_view,
)

EDITED = policy_view("policy", {"reserved": {"count": 2}, "cpuQuota": "Keep"}, generation=2)


def planned(since: int | None = 3, generation: int = 3) -> AssignmentView:
    """Written for generation 1 of POLICY, in generation `since` of the NodeAssignment."""
    reference = {"name": "policy", "generation": 1} | ({"since": since} if since else {})
    pools = {"reserved": "0-1", "shared": "0-7"}
    spec = {"policy": reference, "mode": "Static", "pools": pools}
    return assignment_view(spec, enforcer_status(generation), generation=generation)


def phase_of(before: AssignmentView, *pods: Any, **others: Any) -> tuple[Phase, str]:
    outcome = decide(picture(before, *pods, **others)).outcome
    assert outcome is not None
    return outcome.phase, outcome.reason


def test_a_new_pod_does_not_change_whether_a_policy_is_in_force() -> None:
    decision = decide(picture(planned(), pod_view("a")))
    assert decision.spec is not None
    assert decision.outcome is not None
    assert decision.outcome.phase is Phase.IN_FORCE
    busy = enforcer_status(3, conditions=[condition("Ready", False, "Applying")])
    written = assignment_view(decision.spec.to_wire(), busy, generation=4)
    assert phase_of(written, pod_view("a")) == (Phase.IN_FORCE, "InForce")


def test_an_edit_is_in_force_once_its_generation_was_observed() -> None:
    edited = decide(picture(planned(), policies=(EDITED,)))
    assert edited.spec is not None
    assert edited.spec.policy is not None
    assert edited.spec.policy.since == 4
    assert edited.outcome is not None
    assert edited.outcome.reason == Reason.WAITING_FOR_ENFORCER
    for observed, generation, expected in (
        (3, 4, Reason.WAITING_FOR_ENFORCER),
        (4, 4, Reason.IN_FORCE),
        (4, 9, Reason.IN_FORCE),
        (10, 9, Reason.WAITING_FOR_ENFORCER),
    ):
        before = assignment_view(
            edited.spec.to_wire(), enforcer_status(observed), generation=generation
        )
        assert phase_of(before, policies=(EDITED,))[1] == expected, (observed, generation)


def test_another_policy_of_that_name_and_generation_is_waited_for() -> None:
    """A policy that was deleted and made again starts at generation 1."""
    again = replace(EDITED, generation=1)
    assert phase_of(planned(), policies=(again,))[1] == Reason.WAITING_FOR_ENFORCER


def test_an_assignment_of_an_older_operator_counts_as_before() -> None:
    assert phase_of(planned(since=None)) == (Phase.IN_FORCE, "InForce")
    late = replace(planned(since=None), generation=4)
    assert phase_of(late)[1] == Reason.WAITING_FOR_ENFORCER


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, None),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, Reason.NODE_NOT_READY),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, Reason.NODE_NOT_READY),
        ({"conditions": [{"type": "Ready"}]}, Reason.NODE_NOT_READY),
        ({"conditions": [{"type": "DiskPressure", "status": "False"}]}, None),
        ({"nodeInfo": {"operatingSystem": "windows"}}, Reason.NOT_LINUX),
        ({"nodeInfo": {"operatingSystem": "Linux"}}, None),
        ({"conditions": "x", "nodeInfo": 3}, None),
        ({"conditions": ["x"], "nodeInfo": {"operatingSystem": 7}}, None),
    ],
)
def test_nodes_that_are_counted_apart(status: dict[str, Any], reason: Reason | None) -> None:
    node = NodeView.decode({"metadata": {"name": "node-1", "uid": "uid-node-1"}, "status": status})
    assert node.not_served == reason
    expected = (Phase.NOT_SERVED, reason) if reason else (Phase.UNDER_WAY, "WaitingForEnforcer")
    assert phase_of(replace(planned(), generation=2), node=node) == expected


JUDGED = [
    pytest.param(enforcer_status(1), Phase.IN_FORCE, "InForce", id="ready"),
    pytest.param(enforcer_status(0), Phase.UNDER_WAY, "WaitingForEnforcer", id="not-observed"),
    pytest.param(
        enforcer_status(1, conditions=[condition("Stalled", True, "CgroupsReadOnly", "no")]),
        Phase.STALLED,
        "CgroupsReadOnly",
        id="stalled",
    ),
    pytest.param(
        enforcer_status(1, conditions=[condition("Ready", False)]),
        Phase.IN_FORCE,
        "InForce",
        id="accepted-and-at-work",
    ),
]


@pytest.mark.parametrize(("status", "phase", "reason"), JUDGED)
def test_the_outcome_follows_the_enforcers_conditions(
    status: dict[str, Any], phase: Phase, reason: str
) -> None:
    outcome = decide(picture(assignment_view(PLANNED, status))).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == (phase, reason)


NO_HARDWARE = waiting(POLICY, "node-1", Reason.WAITING_FOR_TOPOLOGY, "no hardware yet")


class Waiting:
    """One node, what is remembered of it, and the time."""

    def __init__(self) -> None:
        self.now, self.memory = Moment(1e9, 1000.0), NOTHING

    def decide(self, outcome: NodeOutcome | None, **others: Any) -> Decision:
        """What becomes of an outcome now."""
        seen = replace(picture(), now=self.now, memory=self.memory)
        decision = with_times(replace(seen, **others), Decision(Write.NOTHING, outcome=outcome))
        self.memory = decision.memory
        return decision


def test_an_enforcer_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    node = Waiting()
    over_at = node.now.monotonic + ENFORCER_SECONDS
    assert node.decide(NO_HARDWARE).outcome is NO_HARDWARE
    node.now = node.now.after(ENFORCER_SECONDS - 10)
    edited = replace(NO_HARDWARE, generation=2)
    assert node.decide(edited).outcome is edited
    assert node.decide(edited).again_at == over_at, "an edit does not begin the time again"
    node.now = node.now.after(10)
    late = node.decide(NO_HARDWARE)
    assert late.outcome is not None
    assert (late.outcome.phase, late.outcome.reason) == (Phase.NOT_SERVED, Reason.NO_ENFORCER)
    assert late.outcome.message == "no hardware yet, for 5 minutes"
    assert late.again_at is None, "nothing more comes with time"


@pytest.mark.parametrize(
    "outcome", [None, replace(NO_HARDWARE, phase=Phase.IN_FORCE, reason="InForce")]
)
def test_an_enforcer_that_has_answered_is_waited_for_again(outcome: NodeOutcome | None) -> None:
    node = Waiting()
    node.decide(NO_HARDWARE)
    node.now = node.now.after(ENFORCER_SECONDS)
    assert node.decide(outcome).outcome is outcome
    assert (node.memory, node.decide(outcome).again_at) == (NOTHING, None)
    assert node.decide(NO_HARDWARE).outcome is NO_HARDWARE


def test_a_node_that_waits_for_its_turn_keeps_the_time_of_its_enforcer() -> None:
    node = Waiting()
    node.decide(NO_HARDWARE)
    node.now = node.now.after(ENFORCER_SECONDS)
    assert node.decide(NO_HARDWARE, turn=Turn(POLICY, "others change")).outcome is NO_HARDWARE
    late = node.decide(NO_HARDWARE).outcome
    assert late is not None
    assert late.phase is Phase.NOT_SERVED


def test_refused_pods_are_counted_as_outcomes_change() -> None:
    tally = Tally()
    for node in "ab":
        tally.rank(node, ("policy",))
        tally.judge(node, replace(waiting(POLICY, node, "Applying", ""), refused=2))
    assert tally.summary("policy", 1, POLICY.uid).refused == 4
    tally.judge("a", replace(waiting(POLICY, "a", "Applying", ""), refused=5))
    assert tally.summary("policy", 1, POLICY.uid).refused == 7
    tally.rank("b", ("other", "policy"))
    assert tally.summary("policy", 1, POLICY.uid).refused == 5
    assert tally.summary("policy", 2, POLICY.uid).refused == 0


def test_a_refusal_is_part_of_the_outcome() -> None:
    outcome = decide(picture(planned(), pod_view("a", "4"), pod_view("b", "4"))).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.refused) == (Phase.IN_FORCE, 1)
    absent = replace(node_view(), not_served=Reason.NODE_NOT_READY)
    outcome = decide(picture(planned(), pod_view("a", "9"), node=absent)).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.refused) == (Phase.NOT_SERVED, 1)
