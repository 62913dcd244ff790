"""What the operator would decide about one pod.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec, Refusal
from numapin_cli.what_if import Foreseen, followed
from numapin_operator.nodes.decide import Decision, NodePicture, decide
from numapin_operator.nodes.decide.decision import OnPausedNode
from numapin_operator.nodes.moves.changes import planned_moves
from numapin_operator.nodes.moves.steps import MOST_NOTICE
from numapin_operator.placement import (
    AwaitsDevices,
    PodView,
    Queued,
    Unaccepted,
    Waiting,
    is_driver,
)
from numapin_operator.policies.status import Phase

MOST_STEPS: Final = 8
"""How many decisions are made in advance until all moves have ended; one move takes four."""


class Standing(Enum):
    """The outcome for a pod."""

    PLACED = "placed"
    RESIZE_WAITS = "resize waits"
    REFUSED = "refused"
    WAITING = "waiting"
    SHARES = "shares"
    NOT_PLANNED = "not planned"


@dataclass(frozen=True, slots=True)
class Fate:
    """What the operator decides about a pod.

    Attributes:
        standing: the outcome.
        reason: one CamelCase word; empty if it is placed or shares.
        message: the same for people, with the planner's numbers.
        entries: what its containers get, at once or after the moves.
        container: the container that is refused; empty if that is the whole pod.
        moves: how the operator moves containers first so that the pod fits, each as a clause that
            begins with a verb; none if it moves none.
    """

    standing: Standing
    reason: str = ""
    message: str = ""
    entries: tuple[ContainerAssignment, ...] = ()
    container: str = ""
    moves: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the pod gets all that it requests, at once or after moves."""
        return self.standing is Standing.PLACED or bool(self.moves)


def fate_in(picture: NodePicture, uid: str) -> Fate:
    """Decide about a node as the operator does, and pick out one pod.

    Of a pod that waits for moves, the fate says what it gets after them.
    """
    decision = decide(picture)
    fate = decided_fate(picture, decision, uid)
    if fate.reason == Reason.WAITING_FOR_MOVES:
        return _with_moves(picture, decision, uid, fate)
    return fate


def _with_moves(picture: NodePicture, decision: Decision, uid: str, fate: Fate) -> Fate:
    """The fate of a pod that waits for moves, once these have ended.

    Each decision is followed at once, and the notice of each move has passed before the next one.
    """
    moves = dict.fromkeys(_begun(picture, decision))
    for _ in range(MOST_STEPS):
        after = followed(picture, decision)
        if after is None or picture.now is None:
            return fate
        done = replace(after.status, containers=())
        now = picture.now.unix + MOST_NOTICE + 1
        picture = replace(picture, assignment=replace(after, status=done)).at(now)
        decision = decide(picture)
        moves |= dict.fromkeys(_begun(picture, decision))
        placed = decided_fate(picture, decision, uid)
        if placed.standing is Standing.PLACED:
            lines = tuple(moves) or ("completes the moves that have begun",)
            return replace(fate, entries=placed.entries, moves=lines)
    return fate


def _begun(picture: NodePicture, decision: Decision) -> Iterator[str]:
    assignment = picture.assignment
    if assignment is not None:
        yield from planned_moves(assignment.spec, decision.spec, assignment.topology)


def decided_fate(picture: NodePicture, decision: Decision, uid: str) -> Fate:
    """Pick one pod out of a decision; moves that it waits for are not looked ahead."""
    if why := _not_planned(decision):
        return why
    assignment = picture.assignment
    spec = decision.spec or (assignment.spec if assignment else NodeAssignmentSpec())
    if spec.pools is None:
        assert decision.outcome is not None
        if spec.mode == "None":
            return Fate(Standing.SHARES, message="the policy's mode is None")
        return Fate(Standing.NOT_PLANNED, decision.outcome.reason, decision.outcome.message)
    return written_fate(spec, uid) or _waiting(decision, uid) or Fate(Standing.SHARES)


def planned_fates(foreseen: Foreseen, pods: Collection[str]) -> Iterator[tuple[str, PodView, Fate]]:
    """The pods of a planned node that are asked about, with name and fate; none without a policy.

    Args:
        foreseen: the plan of a node.
        pods: the namespaces and names (`namespace/name`) of the pods that are asked about.
    """
    for pod in foreseen.picture.pods if foreseen.picture.ranked else ():
        name = f"{pod.namespace}/{pod.name}"
        if name in pods:
            yield name, pod, decided_fate(foreseen.picture, foreseen.decision, pod.uid)


def written_fate(spec: NodeAssignmentSpec, uid: str) -> Fate | None:
    """What a spec has decided about a pod; None if the pod is not in it."""
    if refusal := next((one for one in spec.refused if one.pod_uid == uid), None):
        return _refused(refusal)
    entries = tuple(one for one in spec.containers if one.pod_uid == uid)
    if resize := next((one for one in spec.refused_resizes or () if one.pod_uid == uid), None):
        return replace(_refused(resize), standing=Standing.RESIZE_WAITS, entries=entries)
    return Fate(Standing.PLACED, entries=entries) if entries else None


def _not_planned(decision: Decision) -> Fate | None:
    outcome = decision.outcome
    if outcome is None:
        return Fate(Standing.NOT_PLANNED, message="no CpuPolicy selects the node")
    if outcome.phase in {Phase.STALLED, Phase.NOT_SERVED}:
        return Fate(Standing.NOT_PLANNED, outcome.reason, outcome.message)
    return None


def _refused(refusal: Refusal) -> Fate:
    return Fate(
        Standing.REFUSED, refusal.reason, refusal.message, container=refusal.container or ""
    )


def _waiting(decision: Decision, uid: str) -> Fate | None:
    for one in decision.waiting:
        if one.pod.uid == uid:
            return _fate_of(one)
    return None


def _fate_of(one: Waiting | OnPausedNode) -> Fate:
    match one:
        case OnPausedNode():
            return Fate(Standing.NOT_PLANNED, Reason.NODE_PAUSED, one.why)
        case Queued():
            return _queued(one)
        case Unaccepted():
            return _unaccepted(one)
        case AwaitsDevices():
            message = missing_devices(one.resources)
            return Fate(Standing.WAITING, Reason.WAITING_FOR_KUBELET, message)


def missing_devices(resources: Iterable[str], message: str | None = None) -> str:
    """What is not known of a pod's devices; `message` says why the node does not report them."""
    given = [one for one in resources if not is_driver(one)]
    claimed = [one for one in resources if is_driver(one)]
    parts = []
    if given:
        why = f": {message}" if message else ""
        parts.append(f"the node has not reported which {' and '.join(given)} it has{why}")
    if claimed:
        parts.append(f"no ResourceSlice has its devices of {' and '.join(claimed)}")
    return "; ".join(parts)


def _queued(one: Queued) -> Fate:
    what = f"CPUs {one.cpus}" if one.cpus else "CPUs" if one.moving else "memory"
    parts = [f"{_named(one.ending)}, which ends"] if one.ending else []
    parts += [f"{_named(one.moving)}, which is moved"] if one.moving else []
    message = f"it waits for {what} of {'; and of '.join(parts)}"
    reason = Reason.WAITING_FOR_MOVES if one.moving else Reason.WAITING_FOR_ENDING_PODS
    return Fate(Standing.WAITING, reason, message)


def _named(pods: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{namespace}/{name}" for namespace, name in pods)


def _unaccepted(one: Unaccepted) -> Fate:
    left = (
        f"{_amounts(one.left.cpu_millis, one.left.memory_bytes)} and room for {one.left.pods} pods"
    )
    message = (
        f"no room: it requests {_amounts(*one.requests)}, and the node's other pods leave {left}"
    )
    return Fate(Standing.WAITING, Reason.WAITING_FOR_KUBELET, message)


def _amounts(cpu_millis: int, memory_bytes: int) -> str:
    cpus = "1 CPU" if cpu_millis == 1000 else f"{cpu_millis / 1000:g} CPUs"
    return f"{cpus} and {memory_bytes / 2**20:.0f} MiB"


def gives(entries: tuple[ContainerAssignment, ...]) -> str:
    """What containers get, for people."""
    parts = []
    for one in entries:
        what = [f"CPUs {one.cpus}"] if one.cpus else []
        what += [f"NUMA {one.mems}"] if one.mems else []
        parts.append(f"{one.container}: {', '.join(what) or 'shared CPUs'}")
    return "; ".join(parts)


def all_cpus(entries: tuple[ContainerAssignment, ...]) -> CpuSet:
    """The CPUs of some containers."""
    return CpuSet.union(one.cpus for one in entries)
