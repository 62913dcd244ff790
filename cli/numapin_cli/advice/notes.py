"""What is to be known of a pod whose containers have what they request.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from numapin_api.cpuset import MemSet
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_api.topology import Topology
from numapin_cli.advice.fate import planned_fates
from numapin_cli.what_if import Foreseen
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.nodes.decide.kubevirt import launches_dedicated
from numapin_operator.placement import PodView, why_near, why_preferred

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
        if launches_dedicated(pod):
            found.append(KUBEVIRT)
        if found:
            yield name, tuple(found)


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
