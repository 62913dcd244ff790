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

    That is the assignment's own, with exceptions: under mode None it has the containers that the
    enforcer still reads back as exclusive. An assignment that was created again, after somebody
    deleted it, has those that the enforcer reads back as the last one gave them. And while the
    kubelet pins containers itself, it has those as the kubelet pins them, so that they keep their
    CPUs when that ends.
    """
    spec, status = assignment.spec, assignment.status
    if status.kubelet_containers:
        mems = _known_mems(assignment, binds_memory=binds_memory)
        return _taken_over(spec, _kept(pods, status.kubelet_containers, mems))
    if spec.mode == "None":
        found = [one for one in status.containers if one.exclusive]
        mems = _known_mems(assignment, binds_memory=binds_memory)
        return spec.model_copy(update={"containers": _kept(pods, found, mems)})
    if spec.pools is None:
        mems = _known_mems(assignment, binds_memory=binds_memory)
        kept = _kept(pods, status.containers, mems, is_own=True)
        return spec.model_copy(update={"containers": kept})
    return spec


def reports_running(assignment: AssignmentView) -> bool:
    """Whether an enforcer reports what running containers have, where the spec does not say it.

    It still enforces the last spec when the assignment is created again. Until it has read back the
    cgroups, which a first status without these fields tells, a plan would move all of them.
    """
    spec = assignment.spec
    if spec.pools is not None or spec.mode == "None":
        return True
    return "running" in assignment.status.model_fields_set or kubelet_pins(assignment)


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
    pods: Iterable[PodView], found: Iterable[_Pinned], mems: MemSet, *, is_own: bool = False
) -> tuple[ContainerAssignment, ...]:
    """The containers of `found` that keep what they have.

    Only a pod whose exclusive containers all still have as many CPUs as they ask for counts, and
    no CPU counts twice. If it `is_own`, what an assignment of ours gave them, each of these
    containers counts that has no more than it asks for: others may be starting, or wait for more.
    Memory is bound if `mems` and the status tell where it is; else the plan withholds it.
    """
    of_pod: dict[str, list[_Pinned]] = {}
    for one in found:
        of_pod.setdefault(one.pod_uid, []).append(one)
    taken, entries = CpuSet(), list[ContainerAssignment]()
    for pod in pods:
        ended = {one.name for one in pod.containers if one.ended or one.cpu_claims}
        had = [one for one in of_pod.get(pod.uid, ()) if one.container not in ended]
        had = _at_most_asked(pod, had) if is_own else had
        cpus = CpuSet.union(one.cpus for one in had)
        fits = _is_apart(pod, had) if is_own else _is_whole(pod, had)
        if fits and cpus.isdisjoint(taken):
            taken |= cpus
            asked = _bound(pod, had, mems)
            entries += [_entry(pod, one, asked.get(one.container, ())) for one in had]
    return tuple(entries)


def _is_whole(pod: PodView, found: Sequence[_Pinned]) -> bool:
    """Whether these are just the exclusive containers of a pod, with CPUs of their own.

    The containers that start after an init container reuse its CPUs.
    """
    has = {one.container: len(one.cpus) for one in found}
    return _is_apart(pod, found) and _asked(pod) == has


def _asked(pod: PodView) -> dict[str, int]:
    """How many exclusive CPUs each container of a pod asks for."""
    return {
        one.name: count
        for one in pod.containers
        if not one.ended and (count := exclusive_cpus(pod, one))
    }


def _at_most_asked(pod: PodView, found: Sequence[_Pinned]) -> list[_Pinned]:
    """Those that ask for exclusive CPUs, and have no more than that: their sets are as written."""
    asked = _asked(pod)
    return [one for one in found if 0 < len(one.cpus) <= asked.get(one.container, 0)]


def _is_apart(pod: PodView, found: Sequence[_Pinned]) -> bool:
    """Whether there are any, and no two of those that run at the same time have a CPU in common."""
    first = {one.name for one in pod.containers if one.kind is ContainerKind.INIT}
    lasting = [one.cpus for one in found if one.container not in first]
    return bool(found) and len(CpuSet.union(lasting)) == sum(map(len, lasting))


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
