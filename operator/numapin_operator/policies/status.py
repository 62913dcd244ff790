"""Pure: what came of a policy on its nodes becomes its status."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
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
    """How far a node has come with its policy."""

    IN_FORCE = "in force"
    UNDER_WAY = "under way"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """What came of the governing policy on one node, and why it is not in force if it is not."""

    node: str
    policy: str
    generation: int
    phase: Phase
    reason: str = Reason.IN_FORCE
    message: str = ""


@dataclass(frozen=True, slots=True)
class PolicyNodes:
    """The nodes that a policy selects: those it governs, and by whom it is overruled elsewhere."""

    governed: Sequence[str]
    overruled: Mapping[str, Sequence[str]]


def judge_enforcer(policy: PolicyView, assignment: AssignmentView) -> NodeOutcome:
    """What the enforcer makes of an assignment that already says what the policy wants."""
    made = _made_for(policy, assignment.name)
    status = assignment.status
    stalled = find(status.conditions, ConditionType.STALLED)
    if status.observed_generation != assignment.generation:
        return made(Phase.UNDER_WAY, Reason.WAITING_FOR_ENFORCER, "the enforcer has not seen it")
    if stalled is not None and stalled.status == "True":
        return made(Phase.STALLED, stalled.reason, stalled.message)
    ready = find(status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "True":
        return made(Phase.IN_FORCE, Reason.IN_FORCE, "")
    return made(Phase.UNDER_WAY, Reason.APPLYING, ready.message if ready else "")


def waiting(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy is under way on a node."""
    return _made_for(policy, node)(Phase.UNDER_WAY, reason, message)


def stalled(policy: PolicyView, node: str, reason: str, message: str) -> NodeOutcome:
    """The policy cannot be put in force on a node until somebody mends something."""
    return _made_for(policy, node)(Phase.STALLED, reason, message)


class _made_for:  # noqa: N801 - used as a function
    def __init__(self, policy: PolicyView, node: str) -> None:
        self._policy, self._node = policy, node

    def __call__(self, phase: Phase, reason: str, message: str) -> NodeOutcome:
        return NodeOutcome(
            node=self._node,
            policy=self._policy.name,
            generation=self._policy.generation,
            phase=phase,
            reason=str(reason),
            message=message[:MESSAGE_LENGTH],
        )


def sort_nodes(
    ranked: Mapping[str, Sequence[PolicyView]], wanted: Iterable[str]
) -> dict[str, PolicyNodes]:
    """For each wanted policy, the nodes that it selects.

    Args:
        ranked: for each node the policies that select it, the governing one first.
        wanted: names of policies.
    """
    governed: dict[str, list[str]] = {name: [] for name in wanted}
    overruled: dict[str, dict[str, list[str]]] = {name: {} for name in governed}
    for node in sorted(ranked):
        for place, policy in enumerate(ranked[node]):
            if policy.name not in governed:
                continue
            if place == 0:
                governed[policy.name].append(node)
            else:
                overruled[policy.name].setdefault(ranked[node][0].name, []).append(node)
    return {name: PolicyNodes(governed[name], overruled[name]) for name in governed}


def policy_status(
    policy: PolicyView, nodes: PolicyNodes, outcomes: Mapping[str, NodeOutcome], now: str
) -> CpuPolicyStatus:
    """The status to write for a policy.

    Args:
        policy: as it is now; its conditions keep their times where they do not change.
        nodes: which nodes it selects.
        outcomes: what came of each node's governing policy, by node; one of another policy or
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
            policy.status.conditions, _verdicts(policy, nodes, judged), policy.generation, now
        ),
    )


def _current(policy: PolicyView, node: str, outcome: NodeOutcome | None) -> NodeOutcome:
    if outcome and (outcome.policy, outcome.generation) == (policy.name, policy.generation):
        return outcome
    return waiting(policy, node, Reason.APPLYING, "not planned yet")


def policy_fault(policy: PolicyView) -> tuple[str, str] | None:
    """What is wrong with a policy wherever it governs: a reason and a message."""
    if policy.problem is not None:
        return Reason.INVALID_POLICY, f"spec.{policy.problem}"
    if fields := unsupported_fields(policy.spec):
        said = ", ".join(f"spec.{field}" for field in fields)
        return Reason.UNSUPPORTED_FIELD, f"{said} is not supported yet; what was in force stays"
    return None


def _verdicts(
    policy: PolicyView, nodes: PolicyNodes, judged: Sequence[NodeOutcome]
) -> tuple[Verdict, ...]:
    under_way = [one for one in judged if one.phase is Phase.UNDER_WAY]
    stuck = [one for one in judged if one.phase is Phase.STALLED]
    if fault := policy_fault(policy):
        return _three(
            Verdict(ConditionType.READY, False, *fault),
            stalled=Verdict(ConditionType.STALLED, True, *fault),
        )
    reconciling = (
        Verdict(ConditionType.RECONCILING, True, _commonest(under_way), _said(under_way))
        if under_way
        else None
    )
    if stuck:
        halt = Verdict(ConditionType.STALLED, True, Reason.NODES_STALLED, _said(stuck))
        ready = Verdict(ConditionType.READY, False, Reason.NODES_STALLED, _said(stuck))
        return _three(ready, reconciling, halt)
    if reconciling:
        return _three(reconciling._replace(type=ConditionType.READY, holds=False), reconciling)
    return _three(_ready(nodes, judged))


def _ready(nodes: PolicyNodes, judged: Sequence[NodeOutcome]) -> Verdict:
    if judged:
        return Verdict(
            ConditionType.READY, True, Reason.IN_FORCE, f"in force on {plural(len(judged), 'node')}"
        )
    if nodes.overruled:
        lost = sum(map(len, nodes.overruled.values()))
        said = f"{plural(lost, 'node')} selected, each governed by a policy of higher rank"
        return Verdict(ConditionType.READY, True, Reason.OVERRULED, said)
    return Verdict(
        ConditionType.READY,
        True,
        Reason.NO_NODES_SELECTED,
        "no node has the labels of nodeSelector",
    )


def _three(
    ready: Verdict, reconciling: Verdict | None = None, stalled: Verdict | None = None
) -> tuple[Verdict, ...]:
    return (
        ready,
        reconciling or Verdict(ConditionType.RECONCILING, False, Reason.SETTLED),
        stalled or Verdict(ConditionType.STALLED, False, Reason.NOT_STALLED),
    )


def _commonest(outcomes: Sequence[NodeOutcome]) -> str:
    counts = Counter(one.reason for one in outcomes)
    return min(counts, key=lambda reason: (-counts[reason], reason))


def _said(outcomes: Sequence[NodeOutcome]) -> str:
    """One line for people: each reason with its nodes, the commonest first."""
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
