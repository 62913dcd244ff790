"""What running containers have when a policy comes or returns, and whether it was given back.

Does no I/O.
"""

from collections.abc import Iterable, Mapping, Sequence

from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType, Reason
from numapin_api.containerstatus import ContainerStatus, KubeletContainer
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, MemoryBlock, NodeAssignmentSpec
from numapin_operator.observe.records import AssignmentView
from numapin_operator.placement import (
    Amounts,
    ContainerKind,
    PodView,
    container_memory,
    exclusive_cpus,
)

_Pinned = ContainerStatus | KubeletContainer


def before_plan(
    assignment: AssignmentView, pods: Sequence[PodView], *, binds_memory: bool
) -> NodeAssignmentSpec:
    """The spec from which the next plan goes on, with what running containers have already.

    That is the assignment's own, with two exceptions: under mode None it has the containers that
    the enforcer still reads back as exclusive; and while the kubelet pins containers itself, it has
    those as the kubelet pins them, so that they keep their CPUs when that ends.
    """
    spec, status = assignment.spec, assignment.status
    if status.kubelet_containers:
        mems = _known_mems(assignment, binds_memory=binds_memory)
        return _taken_over(spec, _kept(pods, status.kubelet_containers, mems))
    if spec.mode == "None":
        found = [one for one in status.containers if one.exclusive]
        mems = _known_mems(assignment, binds_memory=binds_memory)
        return spec.model_copy(update={"containers": _kept(pods, found, mems)})
    return spec


def is_released(assignment: AssignmentView) -> bool:
    """Whether the enforcer reports that nothing of this generation is left to be given back."""
    conditions = assignment.status.conditions
    if assignment.status.observed_generation != assignment.generation:
        return False
    ready = find(conditions, ConditionType.READY)
    return kubelet_pins(assignment) or (ready is not None and ready.status == "True")


def kubelet_pins(assignment: AssignmentView) -> bool:
    """Whether the enforcer reports that the kubelet pins containers: nothing of ours is in force.

    Containers have the kubelet's sets then.
    """
    stalled = find(assignment.status.conditions, ConditionType.STALLED)
    return stalled is not None and stalled.reason == Reason.KUBELET_STATIC_POLICY


def _known_mems(assignment: AssignmentView, *, binds_memory: bool) -> MemSet:
    """The NUMA nodes on which memory may be bound."""
    return assignment.topology.mems if binds_memory and assignment.topology else MemSet()


def _taken_over(
    spec: NodeAssignmentSpec, kept: tuple[ContainerAssignment, ...]
) -> NodeAssignmentSpec:
    """The spec with what the kubelet has given; other containers give up what it has given away.

    If anything differs, the spec counts as one of another policy: each container is compared with
    the policy again, and refused pods are tried again.
    """
    pods, taken = {one.pod_uid for one in kept}, CpuSet.union(one.cpus for one in kept)
    known = [one for one in spec.containers if one.pod_uid in pods and not one.claimed]
    if sorted(map(_having, known)) == sorted(map(_having, kept)):
        return spec
    others = [
        one
        for one in spec.containers
        if (one.claimed or one.pod_uid not in pods) and one.cpus.isdisjoint(taken)
    ]
    return spec.model_copy(update={"containers": (*kept, *others), "policy": None, "refused": ()})


def _having(entry: ContainerAssignment) -> tuple[object, ...]:
    """What an entry gives, without the mark."""
    return entry.pod_uid, entry.container, str(entry.cpus), str(entry.mems), str(entry.memory)


def _kept(
    pods: Iterable[PodView], found: Iterable[_Pinned], mems: MemSet
) -> tuple[ContainerAssignment, ...]:
    """The containers of `found` that keep what they have.

    Only a pod whose exclusive containers all still have as many CPUs as they ask for counts, and
    no CPU counts twice. Its memory is bound if `mems` and the status tell where it is; else the
    plan withholds it.
    """
    of_pod: dict[str, list[_Pinned]] = {}
    for one in found:
        of_pod.setdefault(one.pod_uid, []).append(one)
    taken, entries = CpuSet(), list[ContainerAssignment]()
    for pod in pods:
        ended = {one.name for one in pod.containers if one.ended or one.cpu_claims}
        had = [one for one in of_pod.get(pod.uid, ()) if one.container not in ended]
        cpus = CpuSet.union(one.cpus for one in had)
        if _is_whole(pod, had) and cpus.isdisjoint(taken):
            taken |= cpus
            asked = _bound(pod, had, mems)
            entries += [_entry(pod, one, asked.get(one.container, ())) for one in had]
    return tuple(entries)


def _is_whole(pod: PodView, found: Sequence[_Pinned]) -> bool:
    """Whether these are just the exclusive containers of a pod, with CPUs of their own.

    The containers that start after an init container reuse its CPUs.
    """
    asked = {
        one.name: count
        for one in pod.containers
        if not one.ended and (count := exclusive_cpus(pod, one))
    }
    first = {one.name for one in pod.containers if one.kind is ContainerKind.INIT}
    lasting = [one.cpus for one in found if one.container not in first]
    apart = len(CpuSet.union(lasting)) == sum(map(len, lasting))
    return apart and bool(found) and asked == {one.container: len(one.cpus) for one in found}


def _bound(pod: PodView, found: Sequence[_Pinned], mems: MemSet) -> Mapping[str, Amounts]:
    """The memory of each container of a pod; empty if the status does not tell where all of it is.

    It tells if every container that asks for memory is bound to a single NUMA node.
    """
    going_on = [one for one in pod.containers if not one.ended]
    asked = {one.name: memory for one in going_on if (memory := container_memory(pod, one))}
    on_one = all(len(one.mems) == 1 and one.mems <= mems for one in found)
    shares = pod.pod_level is not None or any(one.kind is ContainerKind.INIT for one in going_on)
    known = asked.keys() <= {one.container for one in found}
    return asked if on_one and known and not shares else {}


def _entry(pod: PodView, found: _Pinned, bound: Amounts) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=found.container,
        cpus=found.cpus,
        exclusive=True,
        mems=found.mems if bound else MemSet(),
        memory=tuple(
            MemoryBlock(numa_nodes=tuple(found.mems), resource=resource, bytes=size)
            for resource, size in bound
        ),
    )
