"""What running containers have when a policy comes or returns, and whether it was given back.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType, Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import (
    ContainerAssignment,
    ContainerStatus,
    KubeletContainer,
    MemoryBlock,
    NodeAssignmentSpec,
)
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.placement import (
    Block,
    ContainerKind,
    PodView,
    bound_already,
    container_memory,
    entries_by_pod,
    exclusive_cpus,
    numa_mask,
    within_memory,
)

_Pinned = ContainerStatus | KubeletContainer
_P = TypeVar("_P", bound=_Pinned)
_Blocks = Mapping[str, Sequence[Block]]


def before_plan(
    assignment: AssignmentView, pods: Sequence[PodView], *, binds_memory: bool
) -> NodeAssignmentSpec:
    """The spec from which the next plan goes on, with what running containers have already.

    That is the assignment's own, with exceptions: under mode None it has the containers that the
    enforcer still reads back as exclusive. An assignment that was created again, after somebody
    deleted it, has those that the enforcer reads back as the last one gave them. And while the
    kubelet pins containers itself, it has those as the kubelet pins them, so that they keep their
    CPUs and their NUMA nodes when that ends.
    """
    spec, status = assignment.spec, assignment.status
    if status.kubelet_containers:
        mems = _known_mems(assignment, binds_memory=binds_memory)
        pinned = _pinned(pods, status.kubelet_containers, mems)
        return _taken_over(spec, _that_fits(pinned, assignment))
    if spec.mode == "None":
        found = [one for one in status.containers if one.exclusive]
        mems = _known_mems(assignment, binds_memory=binds_memory)
        return replace(spec, containers=_kept(pods, found, mems))
    if spec.pools is None:
        mems = _known_mems(assignment, binds_memory=binds_memory)
        kept = _kept(pods, status.containers, mems, is_own=True)
        return replace(spec, containers=kept)
    return spec


def as_admitted(assignment: AssignmentView, pods: Sequence[PodView]) -> Sequence[PodView]:
    """The pods, of which containers with other CPUs than they request count as granted theirs.

    That is of those that the kubelet pins, and later of those that keep only their NUMA nodes, in a
    pod whose spec was not edited: it has what it requests. So they get CPUs as in a resize, also
    where the kubelet does not report what it has granted.
    """
    bound = [one for one in assignment.spec.containers if one.memory and not one.cpus]
    listed: tuple[ContainerAssignment | KubeletContainer, ...]
    listed = (*bound, *assignment.status.kubelet_containers)
    has = {one.key: len(one.cpus) for one in listed}
    if not has:
        return pods
    return [pod if pod.edited else _as_admitted(pod, has) for pod in pods]


def _as_admitted(pod: PodView, has: Mapping[tuple[str, str], int]) -> PodView:
    granted = (
        replace(one, granted=True)
        if has.get((pod.uid, one.name), one.whole_cpus) != one.whole_cpus
        else one
        for one in pod.containers
    )
    return replace(pod, containers=tuple(granted))


def reports_running(assignment: AssignmentView) -> bool:
    """Whether an enforcer reports what running containers have, where the spec does not say it.

    It still enforces the last spec when the assignment is created again. Until it has read back the
    cgroups, which a first status without these fields tells, a plan would move all of them.
    """
    spec = assignment.spec
    if spec.pools is not None or spec.mode == "None":
        return True
    return assignment.has_running or kubelet_pins(assignment)


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

    CPUs that were planned for a container to which the kubelet has given none are no difference.

    If anything differs, the spec counts as one of another policy: each container is compared with
    the policy again, and refused pods are tried again.
    """
    pods, taken = {one.pod_uid for one in kept}, CpuSet.union(one.cpus for one in kept)
    planned = {one.key for one in kept if not one.cpus}
    known = [
        replace(one, cpus=CpuSet()) if one.key in planned else one
        for one in spec.containers
        if one.pod_uid in pods and not one.claimed
    ]
    if sorted(map(_having, known)) == sorted(map(_having, kept)):
        return spec
    others = [
        one
        for one in spec.containers
        if (one.claimed or one.pod_uid not in pods) and one.cpus.isdisjoint(taken)
    ]
    return replace(spec, containers=(*kept, *others), policy=None, refused=())


def _that_fits(
    pinned: tuple[ContainerAssignment, ...], assignment: AssignmentView
) -> tuple[ContainerAssignment, ...]:
    """What the kubelet has given, without more memory than the NUMA nodes have.

    A plan cannot keep that, so it would never be as the kubelet has it, and each plan another.
    """
    if assignment.topology is None:
        return pinned
    by_pod = entries_by_pod(NodeAssignmentSpec(containers=pinned))
    return tuple(chain.from_iterable(within_memory(by_pod, assignment.topology).values()))


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
    taken, entries = CpuSet(), list[ContainerAssignment]()
    for pod, running in _running(pods, found):
        had = _at_most_asked(pod, running) if is_own else running
        cpus = CpuSet.union(one.cpus for one in had)
        fits = _is_apart(pod, had) if is_own else _is_whole(pod, had)
        if fits and cpus.isdisjoint(taken):
            taken |= cpus
            bound = _bound(pod, had, mems) if all(len(one.mems) == 1 for one in had) else {}
            entries += [_entry(pod, one, bound.get(one.container, ())) for one in had]
    return tuple(entries)


def _pinned(
    pods: Iterable[PodView], found: Iterable[KubeletContainer], mems: MemSet
) -> tuple[ContainerAssignment, ...]:
    """The containers that keep the CPUs or the NUMA nodes that the kubelet has given them.

    A pod keeps its CPUs as in `_kept`; without them its containers still keep their memory. That is
    on the NUMA nodes of each container together.
    """
    taken, entries = CpuSet(), list[ContainerAssignment]()
    for pod, running in _running(pods, found):
        exclusive = [one for one in running if one.cpus]
        cpus = CpuSet.union(one.cpus for one in exclusive)
        if _is_whole(pod, exclusive) and cpus.isdisjoint(taken):
            had, taken = running, taken | cpus
        else:
            had = [replace(one, cpus=CpuSet()) for one in running]
        bound = _bound(pod, had, mems)
        keeping = (one for one in had if one.cpus or one.container in bound)
        entries += [_entry(pod, one, bound.get(one.container, ())) for one in keeping]
    return tuple(entries)


def _running(pods: Iterable[PodView], found: Iterable[_P]) -> Iterator[tuple[PodView, list[_P]]]:
    """Each pod with those of its containers that have not ended and have no claim to CPUs."""
    of_pod: dict[str, list[_P]] = {}
    for one in found:
        of_pod.setdefault(one.pod_uid, []).append(one)
    for pod in pods:
        ended = {one.name for one in pod.containers if one.ended or one.cpu_claims}
        yield pod, [one for one in of_pod.get(pod.uid, ()) if one.container not in ended]


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


def _bound(pod: PodView, found: Sequence[_Pinned], mems: MemSet) -> _Blocks:
    """The memory of each container of a pod; empty if the status does not tell where all of it is.

    What an init container that runs leaves to those after it is counted once.
    """
    going_on = [one for one in pod.containers if not one.ended]
    asked = {one.name: memory for one in going_on if (memory := container_memory(pod, one))}
    at = {one.container: one.mems for one in found if one.mems and one.mems <= mems}
    if pod.pod_level is not None or not asked.keys() <= at.keys():
        return {}
    return bound_already(
        (one, numa_mask(at[one.name]), asked[one.name]) for one in going_on if one.name in asked
    )


def _entry(pod: PodView, found: _Pinned, bound: Sequence[Block]) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=found.container,
        cpus=found.cpus,
        exclusive=bool(found.cpus),
        mems=found.mems if bound else MemSet(),
        memory=tuple(
            MemoryBlock(numa_nodes=one.node_ids, resource=one.resource, bytes=one.size_bytes)
            for one in bound
        ),
    )
