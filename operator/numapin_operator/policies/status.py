"""Compute a CpuPolicy's status from the outcomes on its nodes. Does no I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from numapin_api.conditions import ConditionType, Reason, Verdict, find, merge
from numapin_api.policystatus import CpuPolicyStatus, PolicyConflict, StalledNode
from numapin_api.quantity import plural
from numapin_operator.observe.records import AssignmentView, PolicyView
from numapin_operator.policies.selection import unsupported_fields

STALLED_NAMED: Final = 20
CONFLICTS_NAMED: Final = 20
EXAMPLES_NAMED: Final = 5
MESSAGE_LENGTH: Final = 1024


class Phase(Enum):
    """How far a policy has come on a node."""

    IN_FORCE = "in force"
    UNDER_WAY = "under way"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """The outcome of the governing policy on one node; `message` says why it is not in force."""

    node: str
    policy: str
    generation: int
    phase: Phase
    reason: str = Reason.IN_FORCE
    message: str = ""


@dataclass(frozen=True, slots=True)
class PolicyNodes:
    """The nodes that a policy selects.

    Attributes:
        governed: where it governs.
        overruled: where another policy governs, by that policy's name.
    """

    governed: Sequence[str]
    overruled: Mapping[str, Sequence[str]]


def judge_enforcer(policy: PolicyView, assignment: AssignmentView) -> NodeOutcome:
    """The outcome that the enforcer reports for an assignment that needs no write."""
    outcome = partial(_outcome, policy, assignment.name)
    status = assignment.status
    stalled = find(status.conditions, ConditionType.STALLED)
    if status.observed_generation != assignment.generation:
        message = "the enforcer has not reported on the newest assignment yet"
        return outcome(Phase.UNDER_WAY, Reason.WAITING_FOR_ENFORCER, message)
    if stalled is not None and stalled.status == "True":
        return outcome(Phase.STALLED, stalled.reason, stalled.message)
    ready = find(status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "True":
        return outcome(Phase.IN_FORCE, Reason.IN_FORCE, "")
    return outcome(Phase.UNDER_WAY, Reason.APPLYING, ready.message if ready else "")


def waiting(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy is under way on a node."""
    return _outcome(policy, node, Phase.UNDER_WAY, reason, message)


def stalled(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy cannot be put in force on a node until a person acts."""
    return _outcome(policy, node, Phase.STALLED, reason, message)


def _outcome(policy: PolicyView, node: str, phase: Phase, reason: str, message: str) -> NodeOutcome:
    return NodeOutcome(
        node=node,
        policy=policy.name,
        generation=policy.generation,
        phase=phase,
        reason=str(reason),
        message=message[:MESSAGE_LENGTH],
    )


def sort_nodes(
    ranked: Mapping[str, Sequence[PolicyView]], policies: Iterable[str]
) -> dict[str, PolicyNodes]:
    """For each of some policies, the nodes that it selects.

    Args:
        ranked: for each node the policies that select it, the governing one first.
        policies: the names of those policies.
    """
    governed: dict[str, list[str]] = {name: [] for name in policies}
    overruled: dict[str, dict[str, list[str]]] = {name: {} for name in governed}
    for node in sorted(ranked):
        for rank, policy in enumerate(ranked[node]):
            if policy.name not in governed:
                continue
            if rank == 0:
                governed[policy.name].append(node)
            else:
                overruled[policy.name].setdefault(ranked[node][0].name, []).append(node)
    return {name: PolicyNodes(governed[name], overruled[name]) for name in governed}


def policy_status(
    policy: PolicyView, nodes: PolicyNodes, outcomes: Mapping[str, NodeOutcome], now: str
) -> CpuPolicyStatus:
    """The status to write for a policy.

    Args:
        policy: its newest state. A condition that does not change keeps its time.
        nodes: the nodes that it selects.
        outcomes: the outcome of each node's governing policy, by node. One of another policy or
            generation counts as under way.
        now: the time, RFC 3339, for conditions that change.
    """
    judged = [_current(policy, node, outcomes.get(node)) for node in nodes.governed]
    stuck = [one for one in judged if one.phase is Phase.STALLED]
    return CpuPolicyStatus(
        observed_generation=policy.generation,
        nodes_selected=len(nodes.governed) + sum(map(len, nodes.overruled.values())),
        nodes_in_force=sum(one.phase is Phase.IN_FORCE for one in judged),
        nodes_stalled=len(stuck),
        stalled=tuple(
            StalledNode(node=one.node, reason=one.reason, message=one.message)
            for one in stuck[:STALLED_NAMED]
        ),
        conflicts=tuple(
            PolicyConflict(policy=winner, nodes=len(lost), examples=tuple(lost[:EXAMPLES_NAMED]))
            for winner, lost in sorted(nodes.overruled.items())[:CONFLICTS_NAMED]
        ),
        conditions=merge(
            policy.status.conditions, _judge(policy, nodes, judged), policy.generation, now
        ),
    )


def _current(policy: PolicyView, node: str, outcome: NodeOutcome | None) -> NodeOutcome:
    if outcome and (outcome.policy, outcome.generation) == (policy.name, policy.generation):
        return outcome
    return waiting(policy, node, Reason.APPLYING, "not planned yet")


def policy_fault(policy: PolicyView) -> tuple[str, str] | None:
    """Why no node can follow this policy, as a reason and a message; None if nodes can."""
    if policy.problem is not None:
        return Reason.INVALID_POLICY, f"spec.{policy.problem}"
    if fields := unsupported_fields(policy.spec):
        unsupported = ", ".join(f"spec.{field}" for field in fields)
        message = f"{unsupported} is not supported yet; what was in force stays in force"
        return Reason.UNSUPPORTED_FIELD, message
    return None


def _judge(
    policy: PolicyView, nodes: PolicyNodes, judged: Sequence[NodeOutcome]
) -> tuple[Verdict, ...]:
    under_way = [one for one in judged if one.phase is Phase.UNDER_WAY]
    stuck = [one for one in judged if one.phase is Phase.STALLED]
    if fault := policy_fault(policy):
        return _verdicts_of(
            Verdict(ConditionType.READY, False, *fault),
            stalled=Verdict(ConditionType.STALLED, True, *fault),
        )
    reconciling = (
        Verdict(ConditionType.RECONCILING, True, _most_frequent(under_way), _by_reason(under_way))
        if under_way
        else None
    )
    if stuck:
        halt = Verdict(ConditionType.STALLED, True, Reason.NODES_STALLED, _by_reason(stuck))
        ready = Verdict(ConditionType.READY, False, Reason.NODES_STALLED, _by_reason(stuck))
        return _verdicts_of(ready, reconciling, halt)
    if reconciling:
        return _verdicts_of(
            reconciling._replace(type=ConditionType.READY, holds=False), reconciling
        )
    return _verdicts_of(_ready(nodes, judged))


def _ready(nodes: PolicyNodes, judged: Sequence[NodeOutcome]) -> Verdict:
    if judged:
        return Verdict(
            ConditionType.READY, True, Reason.IN_FORCE, f"in force on {plural(len(judged), 'node')}"
        )
    if nodes.overruled:
        lost = sum(map(len, nodes.overruled.values()))
        message = f"{plural(lost, 'node')} selected, all governed by other policies"
        return Verdict(ConditionType.READY, True, Reason.OVERRULED, message)
    return Verdict(
        ConditionType.READY,
        True,
        Reason.NO_NODES_SELECTED,
        "no node has the labels of nodeSelector",
    )


def _verdicts_of(
    ready: Verdict, reconciling: Verdict | None = None, stalled: Verdict | None = None
) -> tuple[Verdict, ...]:
    return (
        ready,
        reconciling or Verdict(ConditionType.RECONCILING, False, Reason.SETTLED),
        stalled or Verdict(ConditionType.STALLED, False, Reason.NOT_STALLED),
    )


def _most_frequent(outcomes: Sequence[NodeOutcome]) -> str:
    counts = Counter(one.reason for one in outcomes)
    return min(counts, key=lambda reason: (-counts[reason], reason))


def _by_reason(outcomes: Sequence[NodeOutcome]) -> str:
    """One line for people: each reason with its nodes, the most frequent first."""
    by_reason: dict[str, list[NodeOutcome]] = {}
    for one in outcomes:
        by_reason.setdefault(one.reason, []).append(one)
    parts = []
    for reason, some in sorted(by_reason.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        named = ", ".join(one.node for one in some[:EXAMPLES_NAMED])
        more = ", ..." if len(some) > EXAMPLES_NAMED else ""
        why = f" ({some[0].message})" if some[0].message else ""
        parts.append(f"{plural(len(some), 'node')} {reason}: {named}{more}{why}")
    return "; ".join(parts)
