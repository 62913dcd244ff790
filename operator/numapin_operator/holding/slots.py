"""One node as held pods see it: what is free, what the scheduler has left, what it lacks.

Does no I/O.
"""

from dataclasses import dataclass

from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType, Reason
from numapin_api.cpuset import CpuSet
from numapin_api.quantity import format_bytes
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.reserving import decide_with_wishes
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.observe.records import PolicyView
from numapin_operator.placement import Allocatable, pod_cpus, pod_requests


@dataclass(frozen=True, slots=True)
class Slot:
    """A node whose policy holds pods, with those that have a place or are to have one.

    Attributes:
        picture: what is decided by.
        policy: governs the node.
        free: CPUs that no container has to itself; some of them may not be given out.
        left: what the scheduler still has of it; None if the Node does not say.
        closed: why it takes no pod now, whichever; empty if it does.
    """

    picture: NodePicture
    policy: PolicyView
    free: int
    left: Allocatable | None
    closed: str = ""


@dataclass(frozen=True, slots=True)
class Lack:
    """Why a pod has no place on a node."""

    free: int
    reason: str
    message: str
    container: str | None = None


def slot_of(picture: NodePicture, policy: PolicyView) -> Slot:
    """A node by what would be decided for it now, with the pods that it is to have."""
    picture, _ = decide_with_wishes(picture)
    known, assignment = {one.uid for one in picture.pods}, picture.assignment
    free = 0
    if assignment is not None and assignment.topology is not None and assignment.spec.pools:
        has = CpuSet.union(one.cpus for one in assignment.spec.containers if one.exclusive)
        reserved = assignment.spec.pools.reserved
        listed = {one.pod_uid for one in assignment.spec.containers}
        wished = (pod for pod in picture.wishes if pod.uid in known - listed)
        free = len(assignment.topology.online - reserved - has) - sum(map(pod_cpus, wished))
    return Slot(picture, policy, free, left_on(picture), _closed(picture))


def _closed(picture: NodePicture) -> str:
    """Why a node takes no held pod now; empty if it does."""
    node, assignment = picture.node, picture.assignment
    if node is None or node.not_served is not None:
        return "it is not ready"
    if node.paused:
        return "it is paused"
    if picture.release_at is not None:
        return "its CPUs are about to be given back"
    if assignment is None or assignment.topology is None or assignment.spec.pools is None:
        return "its enforcer has not reported the hardware yet"
    if assignment.deleting or assignment.problem is not None:
        return "its NodeAssignment cannot be written"
    return _silent(assignment)


def _silent(assignment: AssignmentView) -> str:
    """Why a node's enforcer does not put in force what is written; empty if it does."""
    conditions = assignment.status.conditions
    ready, stalled = (
        find(conditions, kind) for kind in (ConditionType.READY, ConditionType.STALLED)
    )
    if ready is not None and ready.status == "Unknown":
        return "its enforcer does not answer"
    if stalled is not None and stalled.status == "True":
        return "its enforcer is stalled"
    return ""


def left_on(picture: NodePicture) -> Allocatable | None:
    """What the requests of bound and reserved pods leave of a Node."""
    offered = picture.node.allocatable if picture.node else None
    if offered is None:
        return None
    counted = [pod_requests(pod) for pod in picture.pods if not pod.terminal]
    return Allocatable(
        offered.cpu_millis - sum(one.cpu_millis for one in counted),
        offered.memory_bytes - sum(one.memory_bytes for one in counted),
        offered.pods - len(counted),
    )


def repels(slot: Slot, pod: HeldPod) -> str:
    """The taint by which a node keeps a pod away; empty if there is none."""
    taint = pod.rules.repelled_by(slot.picture.node.taints) if slot.picture.node else None
    return f"{taint.key}:{taint.effect}" if taint else ""


def offers(slot: Slot, pod: HeldPod) -> bool:
    """Whether a Node offers enough to its only pod."""
    offered = slot.picture.node.allocatable if slot.picture.node else None
    asked = pod_requests(pod.pod)
    return (
        offered is not None
        and asked.cpu_millis <= offered.cpu_millis
        and asked.memory_bytes <= offered.memory_bytes
    )


def lack_of(slot: Slot, pod: HeldPod, wanted: int) -> Lack | None:
    """Why a node need not be planned with a pod; None if it must."""
    if slot.closed:
        return Lack(-1, Reason.HELD, slot.closed)
    if taint := repels(slot, pod):
        return Lack(-1, Reason.HELD, f"the pod does not tolerate its taint {taint}")
    left, asked = slot.left, pod_requests(pod.pod)
    if left is None:
        return Lack(-1, Reason.HELD, "its kubelet has not reported what it offers")
    if (
        asked.cpu_millis > left.cpu_millis
        or asked.memory_bytes > left.memory_bytes
        or not left.pods
    ):
        message = (
            f"{max(0, left.cpu_millis)}m CPU, {format_bytes(max(0, left.memory_bytes), down=True)} "
            f"of memory and {max(0, left.pods)} pods are left for the scheduler; the pod requests "
            f"{asked.cpu_millis}m and {format_bytes(asked.memory_bytes)}"
        )
        return Lack(slot.free, Reason.NOT_ENOUGH_CPUS, message)
    if wanted > slot.free:
        message = f"wanted {wanted} CPUs, {max(0, slot.free)} are free"
        return Lack(slot.free, Reason.NOT_ENOUGH_CPUS, message)
    return None
