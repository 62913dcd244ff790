"""Where a policy is in force and where not, as the operator has reported it.

Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType, Reason, meaning_of
from numapin_api.quantity import plural
from numapin_cli.advice.explanation import Explanation, Line
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.status import policy_fault


def explain_policy(policy: PolicyView) -> Explanation:
    """Explain a policy by its status."""
    base = Explanation(f"policy {policy.name}", "", False, policy=policy.name)
    status = policy.status
    if fault := policy_fault(policy):
        reason, message = fault
        both = (message, meaning_of(reason))
        return replace(base, verdict="is in force nowhere", reason=reason, why=both)
    facts = tuple(_facts(policy))
    if status.observed_generation < policy.generation:
        late = (
            f"the operator has not looked at generation {policy.generation} yet (its last one is"
            f" {status.observed_generation}); if that lasts, see its log"
        )
        return replace(base, verdict="waits for the operator", why=(late,), facts=facts)
    ready = find(status.conditions, ConditionType.READY)
    if ready is None:
        return replace(base, verdict="has no condition Ready", facts=facts)
    why = tuple(filter(None, (ready.message, meaning_of(ready.reason))))
    if ready.status == "True":
        verdict = _READY.get(ready.reason, "is in force")
        return replace(base, verdict=verdict, is_well=True, why=why, facts=facts)
    stalled = find(status.conditions, ConditionType.STALLED)
    halted = stalled is not None and stalled.status == "True"
    verdict = "is stalled on some nodes: a person must act" if halted else "is being put in force"
    return replace(base, verdict=verdict, reason=ready.reason, why=why, facts=facts)


_READY: Final[dict[str, str]] = {
    Reason.NO_NODES_SELECTED: "selects no node",
    Reason.OVERRULED: "is overruled on every node that it selects",
}


def _facts(policy: PolicyView) -> Iterator[Line]:
    status = policy.status
    counts = {
        "selected": status.nodes_selected,
        "in force": status.nodes_in_force,
        "stalled": status.nodes_stalled,
        "not served": status.nodes_not_served,
    }
    yield Line("nodes", ", ".join(f"{count} {name}" for name, count in counts.items()))
    if status.refused:
        yield Line(
            "refused", f"{plural(status.refused, 'pod')} (numapin explain node NAME names them)"
        )
    if status.outdated:
        yield Line("outdated", f"{plural(status.outdated, 'container')} placed by an older edit")
    if name := status.current_revision:
        yield Line("revision", f"{name}, the newest generation that has reached every node")
    for conflict in status.conflicts:
        examples = ", ".join(conflict.examples)
        more = f"takes precedence on {plural(conflict.nodes, 'node')}: {examples}"
        yield Line(f"policy {conflict.policy}", more)
    for node in status.stalled:
        text = f"{node.reason}: {node.message or meaning_of(node.reason)}"
        yield Line(f"node {node.node}", text)
    if policy.unknown:
        yield Line("fields", f"this numapin does not know {', '.join(policy.unknown)}")
