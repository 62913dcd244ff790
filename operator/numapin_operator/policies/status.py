"""Compute a CpuPolicy's status from the outcomes on its nodes. Does no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Final

from numapin_api.conditions.model import find, merge
from numapin_api.conditions.reasons import ConditionType, Reason, Verdict
from numapin_api.quantity import plural
from numapin_api.status.policy import CpuPolicyStatus, PolicyConflict, StalledNode
from numapin_api.text import cut_text, join_texts
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.in_force import has_answered

STALLED_NAMED: Final = 20
CONFLICTS_NAMED: Final = 20
EXAMPLES_NAMED: Final = 5
MESSAGE_LENGTH: Final = 1024
REASONS_NAMED: Final = 20
SUMMARY_LENGTH: Final = 4096
UNKNOWN_LENGTH: Final = 1024
"""Reasons and characters of a condition's message; a node may report any reason and any text."""


class Phase(Enum):
    """How far a policy has come on a node."""

    IN_FORCE = "in force"
    UNDER_WAY = "under way"
    STALLED = "stalled"
    NOT_SERVED = "not served"


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """The outcome of the governing policy on one node.

    `message` says why it is not in force, or what an administrator should know although it is;
    `refused` counts pods, `outdated` containers.
    """

    node: str
    policy: str
    generation: int
    phase: Phase
    reason: str = Reason.IN_FORCE
    message: str = ""
    refused: int = 0
    outdated: int = 0
    policy_uid: str = ""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that have something in common.

    Attributes:
        common: the reason why a policy is not in force on them, or the policy that governs them.
        nodes: how many.
        examples: the first of them by name.
        message: what is said about the first of them.
    """

    common: str
    nodes: int
    examples: tuple[str, ...]
    message: str = ""


@dataclass(frozen=True, slots=True)
class PolicyNodes:
    """The nodes that a policy selects, counted.

    Attributes:
        governed: how many it governs.
        in_force: on how many of these it is in force.
        remarks: the nodes where it is in force and something is to be known, by reason.
        under_way: the governed nodes where it is under way, by reason, the most frequent first.
        stalled: the governed nodes where it is stalled, likewise.
        stalled_nodes: the outcomes on the first of the stalled nodes by name.
        overruled: the nodes where another policy governs, by that policy, sorted by its name.
        not_served: the governed nodes that are not waited for, by reason.
        refused: the refused pods on the governed nodes.
        outdated: the outdated containers on them.
    """

    governed: int = 0
    in_force: int = 0
    remarks: Sequence[NodeGroup] = ()
    under_way: Sequence[NodeGroup] = ()
    stalled: Sequence[NodeGroup] = ()
    stalled_nodes: Sequence[NodeOutcome] = ()
    overruled: Sequence[NodeGroup] = ()
    not_served: Sequence[NodeGroup] = ()
    refused: int = 0
    outdated: int = 0


def judge_enforcer(policy: PolicyView, assignment: AssignmentView) -> NodeOutcome:
    """The outcome that the enforcer reports for an assignment with the policy's settings.

    It has accepted the settings once it has observed the generation that first had them. Newer
    generations and cgroups that are being changed for new pods make no difference.
    """
    outcome = partial(_outcome, policy, assignment.name)
    stalled = find(assignment.status.conditions, ConditionType.STALLED)
    if not has_answered(assignment):
        message = "the enforcer has not reported on the newest assignment yet"
        return outcome(Phase.UNDER_WAY, Reason.WAITING_FOR_ENFORCER, message)
    if stalled is not None and stalled.status == "True":
        return outcome(Phase.STALLED, stalled.reason, stalled.message)
    return outcome(Phase.IN_FORCE, Reason.IN_FORCE, "")


def waiting(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy is under way on a node."""
    return _outcome(policy, node, Phase.UNDER_WAY, reason, message)


def waiting_for_turn(
    policy: PolicyView, node: str, why: str, older: NodeOutcome | None
) -> NodeOutcome:
    """The policy has not been rolled out to a node yet; `older` is the outcome of what is."""
    outcome = waiting(policy, node, Reason.WAITING_FOR_ROLLOUT, why)
    return replace(outcome, refused=older.refused) if older else outcome


def stalled(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy cannot be put in force on a node until a person acts."""
    return _outcome(policy, node, Phase.STALLED, reason, message)


def not_served(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy does not wait for a node."""
    return _outcome(policy, node, Phase.NOT_SERVED, reason, message)


def remarked(outcome: NodeOutcome, reason: Reason, message: str) -> NodeOutcome:
    """An outcome in force with what is to be known about it."""
    return replace(outcome, reason=reason.value, message=cut_text(message, MESSAGE_LENGTH))


def _outcome(policy: PolicyView, node: str, phase: Phase, reason: str, message: str) -> NodeOutcome:
    return NodeOutcome(
        node=node,
        policy=policy.name,
        policy_uid=policy.uid,
        generation=policy.generation,
        phase=phase,
        reason=str(reason),
        message=cut_text(message, MESSAGE_LENGTH),
    )


def policy_status(policy: PolicyView, nodes: PolicyNodes, now: str) -> CpuPolicyStatus:
    """The status to write for a policy.

    Args:
        policy: its newest state. A condition that does not change keeps its time.
        nodes: the nodes that it selects.
        now: the time, RFC 3339, for conditions that change.
    """
    return CpuPolicyStatus(
        observed_generation=policy.generation,
        nodes_selected=nodes.governed + _sum(nodes.overruled),
        nodes_in_force=nodes.in_force,
        nodes_stalled=_sum(nodes.stalled),
        nodes_not_served=_sum(nodes.not_served),
        refused=nodes.refused,
        outdated=nodes.outdated,
        stalled=tuple(
            StalledNode(node=one.node, reason=one.reason, message=one.message)
            for one in nodes.stalled_nodes
        ),
        conflicts=tuple(
            PolicyConflict(policy=lost.common, nodes=lost.nodes, examples=lost.examples)
            for lost in nodes.overruled[:CONFLICTS_NAMED]
        ),
        rolled_out=policy.status.rolled_out,
        current_revision=policy.status.current_revision,
        conditions=merge(policy.status.conditions, _judge(policy, nodes), policy.generation, now),
    )


def has_reached_all(policy: PolicyView, nodes: PolicyNodes) -> bool:
    """Whether a policy's generation has reached every node: none has yet to follow or to answer.

    A node whose hardware is not known yet follows nothing that it could leave.
    """
    settled = {Reason.WAITING_FOR_CONTAINERS, Reason.WAITING_FOR_TOPOLOGY}
    unanswered = any(one.common not in settled for one in nodes.under_way)
    return not (unanswered or policy_fault(policy))


def _sum(groups: Iterable[NodeGroup]) -> int:
    return sum(group.nodes for group in groups)


def policy_fault(policy: PolicyView) -> tuple[str, str] | None:
    """Why no node can follow this policy, as a reason and a message; None if nodes can."""
    if policy.problem is not None:
        return Reason.INVALID_POLICY, f"spec.{policy.problem}"
    if policy.divided:
        unsupported = ", ".join(f"spec.{field}" for field in policy.divided)
        message = f"{unsupported} is not supported yet; what was in force stays in force"
        return Reason.UNSUPPORTED_FIELD, message
    return None


def _judge(policy: PolicyView, nodes: PolicyNodes) -> tuple[Verdict, ...]:
    """The conditions; Ready also names fields of a later release, whatever else it says."""
    ready, *others = _judge_nodes(policy, nodes)
    if policy.unknown:
        unknown = join_texts(policy.unknown, ", ", UNKNOWN_LENGTH)
        note = f"this operator does not know {unknown}: no effect"
        ready = ready._replace(message=f"{ready.message}; {note}")
    return ready, *others


def _judge_nodes(policy: PolicyView, nodes: PolicyNodes) -> tuple[Verdict, ...]:
    if fault := policy_fault(policy):
        return _verdicts_of(
            Verdict(ConditionType.READY, False, *fault),
            stalled=Verdict(ConditionType.STALLED, True, *fault),
        )
    reconciling = None
    if nodes.under_way:
        reason, message = nodes.under_way[0].common, _by_reason(nodes.under_way)
        reconciling = Verdict(ConditionType.RECONCILING, True, reason, message)
    if nodes.stalled:
        message = _by_reason(nodes.stalled)
        halt = Verdict(ConditionType.STALLED, True, Reason.NODES_STALLED, message)
        ready = Verdict(ConditionType.READY, False, Reason.NODES_STALLED, message)
        return _verdicts_of(ready, reconciling, halt)
    if reconciling:
        return _verdicts_of(
            reconciling._replace(type=ConditionType.READY, holds=False), reconciling
        )
    return _verdicts_of(_ready(nodes))


def _ready(nodes: PolicyNodes) -> Verdict:
    if nodes.governed:
        message = f"in force on {plural(nodes.in_force, 'node')}"
        if notes := (*nodes.remarks, *nodes.not_served):
            message += f"; {_by_reason(notes)}"
        return Verdict(ConditionType.READY, True, Reason.IN_FORCE, message)
    if nodes.overruled:
        lost = _sum(nodes.overruled)
        message = f"{plural(lost, 'node')} selected, all governed by other policies"
        return Verdict(ConditionType.READY, True, Reason.OVERRULED, message)
    return Verdict(
        ConditionType.READY,
        True,
        Reason.NO_NODES_SELECTED,
        "no node has the labels that nodeSelector or nodes demands, or all that do are Released",
    )


def _verdicts_of(
    ready: Verdict, reconciling: Verdict | None = None, stalled: Verdict | None = None
) -> tuple[Verdict, ...]:
    return (
        ready,
        reconciling or Verdict(ConditionType.RECONCILING, False, Reason.SETTLED),
        stalled or Verdict(ConditionType.STALLED, False, Reason.NOT_STALLED),
    )


def _by_reason(groups: Sequence[NodeGroup]) -> str:
    """One line for people: each reason with its nodes, cut to a readable length."""
    parts = []
    for group in groups[:REASONS_NAMED]:
        named = ", ".join(group.examples)
        more = ", ..." if group.nodes > len(group.examples) else ""
        why = f" ({group.message})" if group.message else ""
        parts.append(f"{plural(group.nodes, 'node')} {group.common}: {named}{more}{why}")
    return join_texts(parts, "; ", SUMMARY_LENGTH, of=len(groups))
