"""What is to be known of a pod whose containers have what they request.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import ContainerAssignment, ContainerDevices
from numapin_api.topology import Topology
from numapin_cli.advice.explanation import Line
from numapin_cli.advice.fate import missing_devices, planned_fates
from numapin_cli.what_if import Foreseen
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.decide.kubevirt import launches_dedicated
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.placement import (
    NodeDevices,
    PodView,
    is_driver,
    numa_mask,
    why_near,
    why_preferred,
)

KUBEVIRT: Final = (
    "it runs a virtual machine of KubeVirt with dedicated CPUs: a scheduler binds it only where the"
    " Node's label kubevirt.io/cpumanager is true (cpumanager, up to KubeVirt 1.7), which KubeVirt"
    " sets to false where numapin gives CPUs, unless it is kept true (docs/kubevirt.md)"
)


def notes_of_plan(
    foreseen: Foreseen, pods: Collection[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The notes about the pods of a planned node, by namespace and name.

    Args:
        foreseen: the plan of a node.
        pods: the namespaces and names (`namespace/name`) of the pods that are asked about.
    """
    assignment = foreseen.picture.assignment
    topology = assignment.topology if assignment else None
    for name, pod, fate in planned_fates(foreseen, pods):
        found = list(memory_notes(fate.entries, topology))
        found += preference_notes(foreseen.picture, pod)
        found += _left_out(_lacking(assignment, pod))
        if launches_dedicated(pod):
            found.append(KUBEVIRT)
        if found:
            yield name, tuple(found)


def _left_out(resources: Iterable[str]) -> Iterator[str]:
    """Which devices have no say in a plan, because nothing is known of them."""
    given = " and ".join(one for one in resources if not is_driver(one))
    claimed = " and ".join(one for one in resources if is_driver(one))
    if given:
        yield (
            f"the kubelet chooses its devices of {given} when it starts; this plan does not know "
            "them, and they have no say in it"
        )
    if claimed:
        yield (
            f"no ResourceSlice that is given has its devices of {claimed}, and they have no say in "
            "this plan; add those of its node (kubectl get resourceslices -o yaml)"
        )


def preference_notes(picture: NodePicture, pod: PodView) -> Iterator[str]:
    """Which of several NUMA nodes a pod prefers, and by what; near what it says it is to be."""
    if not picture.ranked:
        return
    spec, assignment = picture.ranked[0].spec, picture.assignment
    if why := why_preferred(spec, pod):
        yield why
    if assignment is not None and assignment.topology is not None:
        yield from why_near(spec, assignment.topology, pod)


def memory_notes(
    entries: Iterable[ContainerAssignment], topology: Topology | None
) -> Iterator[str]:
    """Which containers have memory on NUMA nodes without CPUs, and how far from their CPUs."""
    if topology is None:
        return
    for entry in entries:
        bare = entry.mems & topology.mems_without_cpus
        if not bare:
            continue
        far = _farthest(entry, bare, topology)
        apart = f", distance {far} from its CPUs" if far else ""
        several = len(bare) > 1
        yield (
            f"memory of container {entry.container} is on NUMA node{'s' if several else ''} {bare},"
            f" which {'have' if several else 'has'} no CPUs{apart}: CXL or high-bandwidth memory"
        )


def _farthest(entry: ContainerAssignment, bare: MemSet, topology: Topology) -> int:
    """The greatest distance from the container's own CPUs to these NUMA nodes; 0 if unknown."""
    column = {node.id: index for index, node in enumerate(topology.numa_nodes)}
    rows = {node.id: node.distances for node in topology.numa_nodes if node.distances}
    own = [node for node, cpus in topology.numa_cpus.items() if cpus & entry.cpus]
    return max(
        (rows[one][column[other]] for one in own if one in rows for other in bare), default=0
    )


def device_lines(assignment: AssignmentView | None, pod: PodView, uid: str) -> Iterator[Line]:
    """Which devices the containers of a pod have, where, and whether their CPUs are near.

    Only of devices with NUMA nodes, on a node whose kubelet is asked; `uid` is that of its cgroups.
    """
    status = assignment.status.devices if assignment is not None else None
    topology = assignment.topology if assignment is not None else None
    if assignment is None or status is None or topology is None:
        return
    cpus = {one.container: one.cpus for one in assignment.spec.containers if one.pod_uid == uid}
    names = {one.name for one in pod.containers}
    for row in status.containers:
        if row.pod_uid == uid and row.container in names:
            yield Line(row.container, _device(row, cpus.get(row.container, CpuSet()), topology))
    if lacks := _lacking(assignment, replace(pod, uid=uid)):
        text = missing_devices(lacks, status.message)
        yield Line("devices", f"{text}; a new pod waits 2 s, then CPUs are chosen without")


def _lacking(assignment: AssignmentView | None, pod: PodView) -> tuple[str, ...]:
    """The resources of which it is not known which devices a pod has."""
    topology = assignment.topology if assignment is not None else None
    status = assignment.status.devices if assignment is not None else None
    if topology is None or status is None:
        return ()
    everywhere = numa_mask(one.id for one in topology.numa_nodes)
    return NodeDevices(status, everywhere).lacks(pod)


def _device(row: ContainerDevices, cpus: CpuSet, topology: Topology) -> str:
    named = (
        f" ({', '.join(row.ids)}{', ..' if row.count > len(row.ids) else ''})" if row.ids else ""
    )
    has = f"{row.count} {row.resource}{named}"
    if not row.numa_nodes:
        return f"{has}, near no NUMA node that is known"
    has = f"{has} on NUMA node{'s' if len(row.numa_nodes) > 1 else ''} {row.numa_nodes}"
    where = MemSet(node for node, there in topology.numa_cpus.items() if there & cpus)
    if not where:
        return has
    if where <= row.numa_nodes:
        return f"{has}, near its CPUs"
    near = "near some" if where & row.numa_nodes else "far from all"
    return f"{has}, {near} of its CPUs, which are on {where}"
