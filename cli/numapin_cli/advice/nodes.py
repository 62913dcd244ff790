"""Which policy governs a node, whether it is in force there, and why not.

Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from numapin_api.conditions.reasons import Reason, meaning_of
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import plural
from numapin_cli.advice.explanation import Explanation, Line
from numapin_cli.advice.fate import gives
from numapin_cli.inputs.node_labels import unmet_demands
from numapin_cli.live.node_state import IN_FORCE, NodeState
from numapin_cli.what_if import Foreseen, foresee
from numapin_operator.nodes.moves.changes import planned_moves
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.status import Phase

_MOST_REFUSED: Final = 20
_KINDS: Final = {"Task": "task", "KernelThread": "kernel thread", "Interrupt": "interrupt"}


def explain_node(
    state: ClusterState, name: str, reported: NodeState, now: float | None = None
) -> Explanation:
    """Explain a node whose pods are all in the state; see `foresee` for `now`."""
    base = Explanation(f"node {name}", "", False, name)
    ranked = state.policies_of(name)
    if not ranked and (node := state.nodes.get(name)) is not None and node.released:
        ends = f"it was released by hand; numapin resume {name} puts it under its policy again"
        return replace(base, verdict="is released", is_well=True, why=(ends,))
    if not ranked:
        facts = tuple(_not_selecting(state, name))
        why = ("no CpuPolicy selects it; every container runs as without numapin",)
        verdict = "is governed by no policy"
        return replace(base, verdict=verdict, is_well=True, why=why, facts=facts)
    foreseen = foresee(state, name, now)
    outcome = foreseen.outcome
    assert outcome is not None
    base = replace(base, policy=outcome.policy, why=tuple(_why(foreseen, reported)))
    facts = (
        *_overruled(ranked),
        *_has(reported),
        *_not_in_kernel(reported),
        *_disturbances(reported),
        *_moves(foreseen),
        *_refused(reported),
    )
    if outcome.phase is Phase.IN_FORCE and reported.is_ready:
        return replace(base, verdict="has the policy in force", is_well=True, facts=facts)
    reason = outcome.reason if outcome.phase is not Phase.IN_FORCE else reported.readiness
    if outcome.reason == Reason.NODE_PAUSED:
        base = replace(base, why=(*base.why, f"numapin resume {name} ends that"))
        return replace(base, verdict="is paused", reason=reason, facts=facts)
    verdict = {
        Phase.STALLED: "is stalled: a person must act",
        Phase.NOT_SERVED: "is not served: no enforcer is expected to answer",
    }.get(outcome.phase, "is under way: numapin completes it without help")
    return replace(base, verdict=verdict, reason=reason, facts=facts)


def _why(foreseen: Foreseen, reported: NodeState) -> Iterator[str]:
    outcome = foreseen.outcome
    if outcome is not None and outcome.reason != Reason.IN_FORCE:
        yield outcome.message or meaning_of(outcome.reason)
        if outcome.message and (text := meaning_of(outcome.reason)):
            yield f"{outcome.reason}: {text}"
    elif not reported.is_ready:
        ready = reported.ready
        yield ready.message if ready and ready.message else meaning_of(Reason.WAITING_FOR_ENFORCER)
    if reported.problem:
        yield f"its NodeAssignment: {reported.problem}"


def _not_selecting(state: ClusterState, name: str) -> Iterator[Line]:
    node = state.nodes.get(name)
    labels = node.labels if node else {}
    for policy in sorted(state.policies.values(), key=lambda one: one.name):
        field = "nodeSelector" if policy.spec.nodes is None else "nodes"
        wrong = ", ".join(unmet_demands(policy.spec, labels))
        yield Line(f"policy {policy.name}", f"its {field} needs {wrong}")


def _overruled(ranked: tuple[PolicyView, ...]) -> Iterator[Line]:
    for policy in ranked[1:]:
        yield Line(
            f"policy {policy.name}",
            f"selects the node too; {ranked[0].name} takes precedence (higher priority, then older,"
            " then first by name)",
        )


def _has(reported: NodeState) -> Iterator[Line]:
    spec = reported.view.spec if reported.view else None
    if spec is None or spec.pools is None:
        return
    exclusive = [one for one in spec.containers if one.exclusive]
    cpus = CpuSet.union(one.cpus for one in exclusive)
    yield Line("exclusive", f"{plural(len(cpus), 'CPU')} of {plural(len(exclusive), 'container')}")
    yield Line("shared", f"{plural(len(spec.pools.shared), 'CPU')}: {spec.pools.shared}")
    yield Line("reserved", f"{plural(len(spec.pools.reserved), 'CPU')}: {spec.pools.reserved}")
    if reported.status.drift_count:
        causes = ", ".join(f"{key} {n}" for key, n in sorted(reported.status.drift_causes.items()))
        yield Line("drift", f"{reported.status.drift_count} changes were reverted: {causes}")


def _not_in_kernel(reported: NodeState) -> Iterator[Line]:
    for entry in reported.view.spec.containers if reported.view else ():
        actual = reported.in_kernel(entry)
        name = f"{entry.namespace}/{entry.pod} {entry.container}"
        if actual != IN_FORCE:
            given = gives((entry,)).removeprefix(f"{entry.container}: ")
            yield Line(name, f"was given {given}; in the kernel: {actual}")
        if entry.outdated:
            yield Line(name, "the newest policy would place it otherwise, it stays until it ends")


def _disturbances(reported: NodeState) -> Iterator[Line]:
    for one in reported.status.disturbances:
        kind = _KINDS[one.kind]
        yield Line(f"CPUs {one.cpus}", f"{kind} {one.name} comes there again and again")


def _moves(foreseen: Foreseen) -> Iterator[Line]:
    assignment = foreseen.picture.assignment
    topology = assignment.topology if assignment else None
    for line in planned_moves(foreseen.before, foreseen.spec, topology):
        yield Line("about to move", line)
    for entry in foreseen.before.containers if foreseen.before else ():
        if entry.moving is not None:
            text = f"it is being moved off CPUs {entry.moving.leaving}"
            yield Line(f"{entry.namespace}/{entry.pod} {entry.container}", text)


def _refused(reported: NodeState) -> Iterator[Line]:
    spec = reported.view.spec if reported.view else None
    if spec is None:
        return
    for refusal in spec.refused[:_MOST_REFUSED]:
        name = f"{refusal.namespace}/{refusal.pod}"
        yield Line(name, f"refused, {refusal.reason}: {refusal.message}")
    if (more := spec.refused_count - _MOST_REFUSED) > 0:
        yield Line("refused", f"{plural(more, 'more pod')}")
    for resize in spec.refused_resizes or ():
        name = f"{resize.namespace}/{resize.pod} {resize.container or ''}".rstrip()
        yield Line(name, f"its resize waits, {resize.reason}: {resize.message}")
