"""What becomes of a policy on one node, once the planned spec is written.

Does no I/O.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.text import first_texts
from numapin_operator.nodes.decide.decision import NodePicture
from numapin_operator.nodes.decide.generations import is_written
from numapin_operator.nodes.decide.remarks import joined, remarks
from numapin_operator.nodes.decide.returning import reports_running
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.placement import Outdated, Plan
from numapin_operator.policies.status import (
    NodeOutcome,
    judge_enforcer,
    not_served,
    remarked,
    waiting,
)

NAMED: Final = 5
"""Containers and pods that a message names; of more it says how many there are."""


def outcome_of(
    picture: NodePicture, node: NodeView, governing: PolicyView, plan: Plan
) -> NodeOutcome:
    """The outcome of the policy on this node, once `plan` is written."""
    outcome = _judged(picture, node, governing, plan)
    return replace(outcome, refused=plan.spec.refused_count, outdated=len(plan.outdated))


def _judged(picture: NodePicture, node: NodeView, governing: PolicyView, plan: Plan) -> NodeOutcome:
    """The outcome before refused pods and outdated containers are counted."""
    name, assignment = picture.name, picture.assignment
    if node.not_served is not None:
        return not_served(governing, name, node.not_served, "")
    if wait := _unanswered(picture, governing, plan):
        return waiting(governing, name, *wait)
    assert assignment is not None
    outcome = judge_enforcer(governing, assignment)
    if plan.outdated and outcome.reason == Reason.IN_FORCE:
        return waiting(
            governing,
            name,
            Reason.WAITING_FOR_CONTAINERS,
            _named(plan.outdated, is_dynamic=governing.spec.mode == "Dynamic"),
        )
    if outcome.reason == Reason.IN_FORCE:
        about = remarks(governing.spec, assignment.topology, node, picture.other_writer)
        remark = joined(about)
        return remarked(outcome, *remark) if remark else outcome
    return outcome


def _unanswered(
    picture: NodePicture, governing: PolicyView, plan: Plan
) -> tuple[Reason, str] | None:
    """Why the enforcer cannot have accepted the policy yet; None if it can."""
    assignment = picture.assignment
    if picture.release_at is not None:
        delay = governing.spec.release_delay
        message = (
            f"the CPUs are given back at {picture.release_at}, when spec.releaseDelay, {delay}, "
            "has passed"
        )
        return Reason.RELEASE_DELAYED, message
    if governing.spec.mode != "None" and (assignment is None or assignment.topology is None):
        return Reason.WAITING_FOR_TOPOLOGY, "the enforcer has not reported the hardware yet"
    if governing.spec.mode != "None" and assignment and not reports_running(assignment):
        message = "the enforcer has not reported yet which CPUs running containers have"
        return Reason.WAITING_FOR_ENFORCER, message
    if assignment is None or not is_written(assignment.spec.policy, plan.spec.policy):
        message = "the enforcer has not reported on the newest assignment yet"
        return Reason.WAITING_FOR_ENFORCER, message
    return None


def _named(containers: Sequence[Outdated], *, is_dynamic: bool) -> str:
    """Name the containers that the policy would not place as they are."""
    named = [f"{one.namespace}/{one.pod}/{one.container} {one.why}" for one in containers]
    until = "they end or can be moved" if is_dynamic else "they end"
    return f"containers keep what they have until {until}: {first_texts(named, NAMED)}"
