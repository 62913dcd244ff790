"""Pod allocations and refusals as the entries of a NodeAssignment, and allocations back."""

from collections.abc import Iterable, Iterator, Sequence

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import MESSAGE_LENGTH, REQUESTED_LENGTH
from numapin_api.schema.plain_assignment import ContainerAssignment, MemoryBlock, Refusal
from numapin_api.text import cut_text
from numapin_api.topology import Topology
from numapin_operator.placement.allocations import Block, ContainerAllocation, PodAllocation
from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.masks import CpuMask, NumaMask, numa_mask
from numapin_operator.placement.requests import PodView


def allocation_of(uid: str, entries: Sequence[ContainerAssignment]) -> PodAllocation:
    """What a pod has been given, from its entries; there is at least one.

    CPUs that leave a container are not among its CPUs; see `assignment.moving`.
    """
    return PodAllocation(uid, entries[0].namespace, entries[0].pod, tuple(map(_binding, entries)))


def _binding(entry: ContainerAssignment) -> ContainerAllocation:
    blocks = tuple(
        Block(numa_mask(block.numa_nodes), block.resource, block.bytes) for block in entry.memory
    )
    return ContainerAllocation(
        entry.container,
        CpuMask((entry.cpus - entry.moving.leaving if entry.moving else entry.cpus).mask),
        NumaMask(entry.mems.mask),
        blocks,
        entry.exclusive,
        tuple(CpuMask(one.mask) for one in entry.grants or ()),
    )


def entries_of(
    allocations: Iterable[PodAllocation], topology: Topology
) -> Iterator[ContainerAssignment]:
    """The entries of new allocations, pod by pod; NUMA nodes without memory are left out."""
    for allocation in allocations:
        for container, accounted in _accounted(allocation):
            yield ContainerAssignment(
                pod_uid=allocation.uid,
                namespace=allocation.namespace,
                pod=allocation.pod,
                container=container.name,
                cpus=container.cpu_set,
                mems=container.mem_set & topology.mems,
                exclusive=container.exclusive and container.cpus != 0,
                memory=tuple(_wire(block) for block in accounted),
                grants=tuple(map(CpuSet.from_mask, container.grants)) or None,
            )


def _accounted(
    allocation: PodAllocation,
) -> Iterator[tuple[ContainerAllocation, tuple[Block, ...]]]:
    """Each container with the memory that its entry accounts for.

    Memory of a pod as a whole is accounted to its first container, so that the entries add up.
    """
    if allocation.pod_level is None:
        yield from ((container, container.memory) for container in allocation.containers)
        return
    for index, container in enumerate(allocation.containers):
        yield container, () if index else allocation.pod_level.memory


def _wire(block: Block) -> MemoryBlock:
    return MemoryBlock(
        numa_nodes=block.node_ids,
        resource=block.resource,
        bytes=block.size_bytes,
    )


def refusal_of(pod: PodView, error: PlacementError, requested: str | None = None) -> Refusal:
    """The entry of a pod that cannot be placed or resized.

    Its message is cut where it gets too long.
    """
    return Refusal(
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=error.container,
        reason=str(error.reason),
        message=cut_text(str(error), MESSAGE_LENGTH),
        requested=cut_text(requested, REQUESTED_LENGTH) if requested else None,
    )
