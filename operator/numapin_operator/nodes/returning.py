"""A policy that returns finds its containers where the enforcer still reads them back.

Does no I/O.
"""

from collections.abc import Iterable, Sequence

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, ContainerStatus, NodeAssignmentSpec
from numapin_operator.observe.records import AssignmentView
from numapin_operator.placement import PodView, exclusive_cpus


def read_back(assignment: AssignmentView, pods: Iterable[PodView]) -> NodeAssignmentSpec:
    """What running containers still have under an assignment that is being released.

    Only a pod whose exclusive containers all still have as many CPUs as they ask for counts, and
    no CPU counts twice. The memory that was bound is not in the status.
    """
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
            entries += [_entry(pod, one) for one in found]
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


def _entry(pod: PodView, found: ContainerStatus) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=found.container,
        cpus=found.cpus,
        exclusive=True,
    )
