"""Why a pod did or did not get CPUs of its own, and what would help.

Does no I/O.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from numapin_api.topology import Topology
from numapin_cli.advice.eligibility import why_shared
from numapin_cli.advice.explanation import Explanation, Line
from numapin_cli.advice.fate import Fate, Standing, all_cpus, fate_in, gives, written_fate
from numapin_cli.advice.notes import KUBEVIRT, device_lines, memory_notes, preference_notes
from numapin_cli.advice.question import Question, TooManyTriesError
from numapin_cli.advice.remedies.edits import edits
from numapin_cli.advice.remedies.releases import holders, releases
from numapin_cli.advice.remedies.remedy import Remedy
from numapin_cli.advice.remedies.sizes import guaranteed_sizes, other_sizes
from numapin_cli.live.node_state import IN_FORCE, NodeState
from numapin_operator.nodes.decide.kubevirt import launches_dedicated
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.cache import ClusterState
from numapin_operator.placement import PodView, container_memory, exclusive_cpus

SCHEDULER: Final = (
    "where a scheduler would bind the pod (taints, affinity, nodeSelector) was not tried"
)
RUNNING: Final = "how a running container behaves when it is moved or ended was not tried"

_MOST_NODES: Final = 3
"""The most other nodes that are advised."""


def explain_pod(
    state: ClusterState,
    pod: PodView,
    others: Sequence[str],
    reported: NodeState | None,
    now: float | None = None,
) -> Explanation:
    """Explain a pod.

    Args:
        state: the cluster, with all pods of the pod's node and of `others`.
        pod: the pod; it need not be bound to a node.
        others: other nodes to try, in this order.
        reported: what the enforcer of the pod's node reports; None if that is not known.
        now: the time in seconds since 1970; without it no container is moved to make room.
    """
    subject = f"pod {pod.namespace}/{pod.name}"
    if pod.terminal:
        why = ("it has ended; what it had is given to others once nothing of it runs",)
        return Explanation(subject, "ended", True, pod.node, why=why)
    question = Question(state, pod.node, pod, now=now)
    if not pod.node:
        return _unbound(question, subject, others)
    fate, is_written = _fate(question)
    base = Explanation(
        subject,
        _verdict(fate, is_written=is_written),
        False,
        pod.node,
        _policy(state, pod.node),
        fate.reason,
        tuple(filter(None, (fate.message,))),
        tuple(device_lines(picture_of(state, pod.node).assignment, pod, _uid_on_node(state, pod))),
    )
    match fate.standing:
        case Standing.PLACED | Standing.RESIZE_WAITS:
            has = _placed(base, fate, reported, is_written=is_written)
            notes = memory_notes(fate.entries, _topology(question))
            preferred = preference_notes(picture_of(state, pod.node), pod)
            has = replace(has, why=(*has.why, *notes, *preferred))
            waits = fate.standing is Standing.RESIZE_WAITS
            return _resize_waits(has, question, fate, others) if waits else has
        case Standing.SHARES:
            return _sharing(base, question, fate)
        case Standing.REFUSED:
            return _refused(base, question, fate, others)
        case _:
            moves = tuple(f"the operator {line}" for line in fate.moves)
            base = replace(base, why=(*base.why, *moves))
            return _with_other_nodes(base, question, others)


def _fate(question: Question) -> tuple[Fate, bool]:
    """The pod's fate, and whether the NodeAssignment has it already."""
    state, pod = question.state, question.pod
    assignment = state.assignments.get(pod.node)
    uid = _uid_on_node(state, pod)
    now = fate_in(picture_of(state, pod.node).at(question.now), uid)
    written = written_fate(assignment.spec, uid) if assignment and assignment.version else None
    if written is not None and now.standing is not Standing.NOT_PLANNED:
        is_granted = written.standing is Standing.RESIZE_WAITS and now.standing is Standing.PLACED
        return (now, False) if is_granted else (written, True)
    return now, False


def _uid_on_node(state: ClusterState, pod: PodView) -> str:
    """The UID by which the operator plans: a static pod has another one than its mirror pod."""
    name = (pod.namespace, pod.name)
    on_node = picture_of(state, pod.node).pods
    return next((one.uid for one in on_node if (one.namespace, one.name) == name), pod.uid)


def _policy(state: ClusterState, node: str) -> str:
    ranked = state.policies_of(node)
    return ranked[0].name if ranked else ""


def _verdict(fate: Fate, *, is_written: bool) -> str:
    match fate.standing:
        case Standing.PLACED:
            return _given(fate, is_written=is_written)
        case Standing.RESIZE_WAITS:
            return "keeps what it has; its resize waits"
        case Standing.REFUSED:
            return "was refused; it runs on shared CPUs" if is_written else "is about to be refused"
        case Standing.WAITING:
            return "waits; it runs on shared CPUs meanwhile"
        case Standing.SHARES:
            return "runs on shared CPUs, as the policy says"
        case Standing.NOT_PLANNED:
            return "runs on shared CPUs: numapin does not place pods on this node now"


def _given(fate: Fate, *, is_written: bool) -> str:
    if all_cpus(fate.entries):
        return "has CPUs of its own" if is_written else "is about to get CPUs of its own"
    has = "has its memory bound" if is_written else "is about to have its memory bound"
    return f"{has}, and runs on shared CPUs"


def _placed(
    base: Explanation, fate: Fate, reported: NodeState | None, *, is_written: bool
) -> Explanation:
    facts, all_in_force = list[Line](), is_written
    for entry in fate.entries:
        text = gives((entry,)).removeprefix(f"{entry.container}: ")
        if reported is not None and is_written:
            actual = reported.in_kernel(entry)
            all_in_force = all_in_force and actual == IN_FORCE
            text += "; in the kernel" if actual == IN_FORCE else f"; in the kernel: {actual}"
        if entry.outdated:
            text += "; the newest policy would place it otherwise, it stays until it ends"
        facts.append(Line(entry.container, text))
    why = base.why
    ready = reported.ready if reported is not None and not reported.is_ready else None
    if reported is not None and ready is not None and ready.message:
        why = (*why, f"the enforcer reports {reported.readiness}: {ready.message}")
    return replace(base, is_well=all_in_force, facts=(*facts, *base.facts), why=why)


def _sharing(base: Explanation, question: Question, fate: Fate) -> Explanation:
    if fate.message:
        return replace(base, is_well=True)
    why, found = tuple(why_shared(question)), list[Remedy]()
    asks = question.pod.pod_level or any(one.cpu_millis for one in question.pod.containers)
    if asks and not question.pod.problem:
        with suppress(TooManyTriesError):
            found += guaranteed_sizes(question)
            found += edits(question)
    return replace(
        base, is_well=True, why=why, remedies=tuple(found), tried=dict(question.tries.counts)
    )


def _resize_waits(
    base: Explanation, question: Question, fate: Fate, others: Sequence[str]
) -> Explanation:
    """Advise on a resize that waits. The operator retries it at each plan: room is all it needs."""
    stays, found = replace(question, stays=True), list[Remedy]()
    with suppress(TooManyTriesError):
        for kind in (releases(stays, others), other_sizes(stays, fate), edits(stays)):
            found += kind
        again = question.plan("again")
        if again.fits:
            text = "create the pod again with what it requests now: as a new pod it fits"
            found.append(Remedy.by("again", text, again))
        found += _other_nodes(question, others)
    why = tuple(dict.fromkeys((fate.message, *base.why)))
    return _with_advice(replace(base, is_well=False, why=why), question, found)


def _refused(
    base: Explanation, question: Question, fate: Fate, others: Sequence[str]
) -> Explanation:
    found = list[Remedy]()
    with suppress(TooManyTriesError):
        now = question.plan("again")
        if now.fits:
            how = "the operator then makes room for it" if now.moves else "it fits by now"
            text = f"create the pod again: {how}, and a refusal stands while the pod lives"
            found.append(Remedy.by("again", text, now))
        else:
            for kind in (
                releases(question, others),
                _other_nodes(question, others),
                other_sizes(question, now if now.standing is Standing.REFUSED else fate),
                edits(question),
            ):
                found += kind
    return _with_advice(base, question, found)


def _with_advice(base: Explanation, question: Question, found: Sequence[Remedy]) -> Explanation:
    tries = question.tries
    return replace(
        base,
        in_the_way=tuple(holders(question)),
        remedies=tuple(found),
        tried=dict(tries.counts),
        stopped=tries.stopped,
        limits=(SCHEDULER, RUNNING),
    )


def _with_other_nodes(base: Explanation, question: Question, others: Sequence[str]) -> Explanation:
    found = list[Remedy]()
    with suppress(TooManyTriesError):
        found += _other_nodes(question, others)
    tries = question.tries
    return replace(
        base, remedies=tuple(found), tried=dict(tries.counts), limits=(SCHEDULER,) if found else ()
    )


def _other_nodes(question: Question, others: Sequence[str]) -> Iterator[Remedy]:
    pod = question.pod
    if pod.origin.kind in {"DaemonSet", "Node"} or pod.has_cpu_claims:
        return
    named = 0
    for node in others:
        fate = replace(question, node=node).plan("node")
        if fate.fits:
            yield Remedy.by("node", f"create the pod on {node}", fate, {"node": node})
            named += 1
            if named == _MOST_NODES:
                return


def _topology(question: Question) -> Topology | None:
    assignment = question.state.assignments.get(question.node)
    return assignment.topology if assignment else None


def _unbound(question: Question, subject: str, others: Sequence[str]) -> Explanation:
    facts, found, first = list[Line](), list[Remedy](), None
    pod = question.pod
    for node in others:
        asked = replace(question, node=node)
        fate = asked.plan("node")
        facts.append(Line(node, _would(asked, fate)))
        if fate.fits and len(found) < _MOST_NODES:
            found.append(Remedy.by("node", f"bind it to {node}", fate, {"node": node}))
        if fate.standing is Standing.REFUSED and first is None:
            first = asked, fate
    why = (KUBEVIRT,) if launches_dedicated(pod) else ()
    base = Explanation(subject, "is bound to no node", bool(found), why=why, facts=tuple(facts))
    base = replace(base, remedies=tuple(found), limits=(SCHEDULER,), tried=question.tries.counts)
    if found or first is None:
        wants = any(
            exclusive_cpus(pod, one) or container_memory(pod, one) for one in pod.containers
        )
        return replace(base, is_well=bool(found) or not wants)
    asked, fate = first
    return replace(
        _refused(base, asked, fate, ()),
        node=asked.node,
        policy=_policy(asked.state, asked.node),
        reason=fate.reason,
        why=(f"on {asked.node}: {fate.message}", *why),
    )


def _would(asked: Question, fate: Fate) -> str:
    if fate.moves:
        moves = ", and ".join(f"the operator {line}" for line in fate.moves)
        return f"it would get {gives(fate.entries)} later: {moves}"
    match fate.standing:
        case Standing.PLACED:
            return f"it would get {gives(fate.entries)}"
        case Standing.SHARES:
            why = fate.message or "; ".join(why_shared(asked))
            return f"it would share CPUs: {why}"
        case Standing.NOT_PLANNED:
            return ": ".join(filter(None, (fate.reason, fate.message)))
        case _:
            return f"{fate.reason}: {fate.message}"
