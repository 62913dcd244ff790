"""Which edits of a policy are written to the assignment of a node."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.conditions.reasons import Reason
from numapin_operator.nodes.decide import Decision, Write, decide
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.policies.status import Phase
from support.values.operator import (
    EMPTY,
    PLANNED,
    POLICY,
    REPORTED,
    assignment_view,
    enforcer_status,
    picture,
    pod_view,
    policy_view,
)

START = assignment_view(PLANNED, REPORTED)
FULL = {"reserved": {"count": 2}, "options": {"fullPCPUsOnly": True}}


def test_an_edit_without_a_consequence_for_the_node_writes_nothing() -> None:
    """Its status says that the policy's newest generation is in force."""
    before = assignment_view(PLANNED, REPORTED)
    edited = replace(POLICY, generation=2)
    decision = decide(picture(before, pod_view("a", "500m"), policies=(edited,)))
    assert decision.write is Write.NOTHING
    assert decision.outcome is not None
    assert (decision.outcome.phase, decision.outcome.generation) == (Phase.IN_FORCE, 2)
    unknown = assignment_view(EMPTY)
    assert decide(picture(unknown, policies=(edited,))).write is Write.NOTHING
    other = policy_view("other", {"reserved": {"count": 2}})
    assert decide(picture(before, policies=(other,))).write is Write.REPLACE


@pytest.mark.parametrize(
    "edit", [{"mode": "None"}, {"cpuQuota": "Keep"}, {"reserved": {"count": 4}}]
)
def test_an_edit_with_a_consequence_is_written_with_its_generation(edit: dict[str, Any]) -> None:
    policy = policy_view("policy", {"reserved": {"count": 2}} | edit, generation=2)
    spec = decide(picture(assignment_view(PLANNED, REPORTED), policies=(policy,))).spec
    assert spec is not None
    assert spec.policy is not None
    assert spec.policy.generation == 2


def test_refused_pods_are_tried_again_once_for_each_edit() -> None:
    before = assignment_view(PLANNED, REPORTED)
    pods = pod_view("a", "4"), pod_view("b", "4")
    refused = follow(before, decide(picture(before, *pods)))
    edited = replace(POLICY, generation=2)
    again = decide(picture(refused, *pods, policies=(edited,)))
    assert again.spec is not None
    assert again.spec.refused == refused.spec.refused
    retried = follow(refused, again)
    assert decide(picture(retried, *pods, policies=(edited,))).write is Write.NOTHING


def test_a_policy_that_is_created_again_with_another_spec_counts_as_edited() -> None:
    """`kubectl replace --force`: it begins at generation 1 again, as the deleted one."""
    pods = pod_view("a", "1"), pod_view("b", "9")
    before = follow(assignment_view(PLANNED, REPORTED), decide(picture(START, *pods)))
    again = replace(policy_view("policy", FULL), uid="another")
    made = decide(picture(before, *pods, policies=(again,)))
    assert made.spec is not None
    assert made.spec.policy is not None
    assert (made.spec.policy.uid, made.spec.policy.since) == ("another", before.generation + 1)
    assert [one.outdated for one in made.spec.containers] == [True]
    assert made.outcome is not None
    assert made.outcome.reason == Reason.WAITING_FOR_ENFORCER
    after = decide(picture(follow(before, made), *pods, policies=(again,)))
    assert after.outcome is not None
    assert after.outcome.reason == Reason.WAITING_FOR_CONTAINERS


def test_a_policy_that_is_created_again_as_it_was_writes_nothing() -> None:
    before = follow(START, decide(picture(START, pod_view("a", "1"))))
    again = replace(POLICY, uid="another")
    decision = decide(picture(before, pod_view("a", "1"), policies=(again,)))
    assert decision.write is Write.NOTHING
    assert decision.outcome is not None
    assert decision.outcome.phase is Phase.IN_FORCE


def test_an_assignment_of_an_operator_without_uids_stays_in_force() -> None:
    before = assignment_view(PLANNED, REPORTED)
    decision = decide(picture(before, pod_view("a", "1")))
    assert decision.spec is not None
    assert decision.spec.policy is not None
    assert decision.spec.policy.uid == POLICY.uid
    assert decision.outcome is not None
    assert decision.outcome.phase is Phase.IN_FORCE


def follow(assignment: AssignmentView, decision: Decision) -> AssignmentView:
    """The assignment after `decision` was written and its enforcer has reported."""
    assert decision.spec is not None
    generation = assignment.generation + 1
    running = [one.pod_uid for one in decision.spec.containers]
    status = enforcer_status(generation, running=running)
    return assignment_view(decision.spec.to_wire(), status, generation=generation)
