"""Pods that no scheduler has bound, and for which their node may have no room. Does no I/O."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from numapin_operator.placement.requests import PodRequests, PodView, pod_requests


@dataclass(frozen=True, slots=True)
class Allocatable:
    """What a Node offers to pods, as its status says.

    Attributes:
        cpu_millis: in thousandths of a CPU.
        memory_bytes: without huge pages.
        pods: how many of them.
    """

    cpu_millis: int
    memory_bytes: int
    pods: int


@dataclass(frozen=True, slots=True)
class Unaccepted:
    """A pod that has no room on its node and that the kubelet has not accepted yet.

    Attributes:
        pod: the pod that waits.
        requests: what it asks for.
        left: what the node's other pods leave; parts of it can be negative.
    """

    pod: PodView
    requests: PodRequests
    left: Allocatable


def hold_unaccepted(
    pods: Sequence[PodView], allocatable: Allocatable | None, known: Collection[str]
) -> tuple[Sequence[PodView], tuple[Unaccepted, ...]]:
    """Hold pods back that the kubelet is about to refuse.

    A pod that names its node itself passes no scheduler. If it does not fit into what the node
    offers, it must not take CPUs from others before its kubelet has answered.
    Source: Kubernetes v1.36, kubelet/lifecycle, `generalFilter`.

    Args:
        pods: those bound to the node, in the order of placement.
        allocatable: what the node offers; None if it has not said so.
        known: UIDs of the pods about which a decision was made already.

    Returns:
        The pods to plan for, and those that are held back.
    """
    if allocatable is None or all(pod.checked or pod.uid in known for pod in pods):
        return pods, ()
    left, held = allocatable, list[Unaccepted]()
    questioned = [pod for pod in pods if not (pod.checked or pod.uid in known)]
    uids = {pod.uid for pod in questioned}
    for pod in pods:
        if pod.uid not in uids and not pod.terminal:
            left = _without(left, pod_requests(pod))
    for pod in questioned:
        asked = pod_requests(pod)
        after = _without(left, asked)
        if min(after.cpu_millis, after.memory_bytes, after.pods) < 0:
            held.append(Unaccepted(pod, asked, left))
        else:
            left = after
    away = {one.pod.uid for one in held}
    return [pod for pod in pods if pod.uid not in away], tuple(held)


def _without(left: Allocatable, asked: PodRequests) -> Allocatable:
    return Allocatable(
        left.cpu_millis - asked.cpu_millis, left.memory_bytes - asked.memory_bytes, left.pods - 1
    )
