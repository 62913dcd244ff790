"""What becomes of one pod by one decision of the operator.

Does no I/O.
"""

from dataclasses import dataclass
from enum import Enum

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Refusal
from numapin_operator.nodes.decide import Decision, NodePicture, decide
from numapin_operator.placement import Queued, Unaccepted
from numapin_operator.policies.status import Phase


class Standing(Enum):
    """How a pod stands."""

    PLACED = "placed"
    REFUSED = "refused"
    WAITING = "waiting"
    SHARES = "shares"
    NOT_PLANNED = "not planned"


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a pod.

    Attributes:
        standing: how it stands.
        reason: one CamelCase word; empty if it is placed or shares.
        message: the same for people, with the planner's numbers.
        entries: what its containers get.
        container: the container that is refused; empty if that is the whole pod.
    """

    standing: Standing
    reason: str = ""
    message: str = ""
    entries: tuple[ContainerAssignment, ...] = ()
    container: str = ""

    @property
    def fits(self) -> bool:
        """Whether the pod gets CPUs or memory of its own."""
        return self.standing is Standing.PLACED


def fate_in(picture: NodePicture, uid: str) -> Fate:
    """Decide about a node as the operator does, and pick out one pod."""
    decision = decide(picture)
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


def written_fate(spec: NodeAssignmentSpec, uid: str) -> Fate | None:
    """What a spec says of a pod; None if it says nothing."""
    if refusal := next((one for one in spec.refused if one.pod_uid == uid), None):
        return _refused(refusal)
    entries = tuple(one for one in spec.containers if one.pod_uid == uid)
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
            return _queued(one) if isinstance(one, Queued) else _unaccepted(one)
    return None


def _queued(one: Queued) -> Fate:
    pods = ", ".join(f"{namespace}/{name}" for namespace, name in one.ending)
    what = f"CPUs {one.cpus}" if one.cpus else "memory"
    message = f"it waits for {what} of {pods}, which ends"
    return Fate(Standing.WAITING, Reason.WAITING_FOR_ENDING_PODS, message)


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
