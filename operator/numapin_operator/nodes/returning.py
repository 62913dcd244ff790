"""A policy that returns finds its containers where the enforcer still reads them back.

Does no I/O.
"""

from collections.abc import Iterable, Mapping, Sequence

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import (
    ContainerAssignment,
    ContainerStatus,
    MemoryBlock,
    NodeAssignmentSpec,
)
from numapin_operator.observe.records import AssignmentView
from numapin_operator.placement import (
    Amounts,
    ContainerKind,
    PodView,
    container_memory,
    exclusive_cpus,
)


def read_back(
    assignment: AssignmentView, pods: Iterable[PodView], *, binds_memory: bool
) -> NodeAssignmentSpec:
    """What running containers still have under an assignment that is being released.

    Only a pod whose exclusive containers all still have as many CPUs as they ask for counts, and
    no CPU counts twice. With `binds_memory` its memory is bound where the status tells where it is;
    else the plan withholds it.
    """
    mems = assignment.topology.mems if binds_memory and assignment.topology else MemSet()
    of_pod: dict[str, list[ContainerStatus]] = {}
    for one in assignment.status.containers:
        if one.exclusive:
            of_pod.setdefault(one.pod_uid, []).append(one)
    taken, entries = CpuSet(), list[ContainerAssignment]()
    for pod in pods:
        found = of_pod.get(pod.uid, [])
        cpus = CpuSet.union(one.cpus for one in found)
        if _is_whole(pod, found) and cpus.isdisjoint(taken):
            taken |= cpus
            asked = _bound(pod, found, mems)
            entries += [_entry(pod, one, asked.get(one.container, ())) for one in found]
    return assignment.spec.model_copy(update={"containers": tuple(entries)})


def _is_whole(pod: PodView, found: Sequence[ContainerStatus]) -> bool:
    """Whether these are just the exclusive containers of a pod, with CPUs of their own."""
    asked = {
        one.name: count
        for one in pod.containers
        if not one.ended and (count := exclusive_cpus(pod, one))
    }
    apart = len(CpuSet.union(one.cpus for one in found)) == sum(len(one.cpus) for one in found)
    return apart and bool(found) and asked == {one.container: len(one.cpus) for one in found}


def _bound(pod: PodView, found: Sequence[ContainerStatus], mems: MemSet) -> Mapping[str, Amounts]:
    """The memory of each container of a pod; empty if the status does not tell where all of it is.

    It tells if every container that asks for memory is bound to a single NUMA node.
    """
    going_on = [one for one in pod.containers if not one.ended]
    asked = {one.name: memory for one in going_on if (memory := container_memory(pod, one))}
    on_one = all(len(one.mems) == 1 and one.mems <= mems for one in found)
    shares = pod.pod_level is not None or any(one.kind is ContainerKind.INIT for one in going_on)
    known = asked.keys() <= {one.container for one in found}
    return asked if on_one and known and not shares else {}


def _entry(pod: PodView, found: ContainerStatus, bound: Amounts) -> ContainerAssignment:
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
