"""Entries: what pods hold, as it stands in a NodeAssignment, and back."""

from collections.abc import Iterable, Iterator, Sequence

from numapin_api.nodeassignment import ContainerAssignment, MemoryBlock
from numapin_api.topology import Topology
from numapin_operator.placement.allocations import Binding, Block, Holding
from numapin_operator.placement.masks import mask_of


def holding_of(uid: str, entries: Sequence[ContainerAssignment]) -> Holding:
    """What a pod holds, from its entries; there is at least one."""
    return Holding(uid, entries[0].namespace, entries[0].pod, tuple(map(_binding, entries)))


def _binding(entry: ContainerAssignment) -> Binding:
    blocks = tuple(
        Block(mask_of(block.numa_nodes), block.resource, block.bytes) for block in entry.memory
    )
    return Binding(entry.container, entry.cpus.mask, entry.mems.mask, blocks, entry.exclusive)


def entries_of(holdings: Iterable[Holding], topology: Topology) -> Iterator[ContainerAssignment]:
    """The entries of new holdings, pod by pod; NUMA nodes without memory are left out."""
    for holding in holdings:
        for binding, accounted in _accounted(holding):
            yield ContainerAssignment(
                pod_uid=holding.uid,
                namespace=holding.namespace,
                pod=holding.pod,
                container=binding.container,
                cpus=binding.cpu_set,
                mems=binding.mem_set & topology.mems,
                exclusive=binding.exclusive and binding.cpus != 0,
                memory=tuple(_wire(block) for block in accounted),
            )


def _accounted(holding: Holding) -> Iterator[tuple[Binding, tuple[Block, ...]]]:
    """Each container with the memory that stands for it in the books.

    What a pod has as a whole stands with its first container, so that the entries add up.
    """
    if holding.whole is None:
        yield from ((binding, binding.memory) for binding in holding.bindings)
        return
    for index, binding in enumerate(holding.bindings):
        yield binding, () if index else holding.whole.memory


def _wire(block: Block) -> MemoryBlock:
    return MemoryBlock(
        numa_nodes=block.node_ids,
        resource=block.resource,
        bytes=block.size_bytes,
    )


def on_this_machine(entry: ContainerAssignment, topology: Topology) -> ContainerAssignment | None:
    """The entry without CPUs and NUMA nodes that the machine has lost; None if nothing is left.

    CPUs that go offline leave their container's set by the kernel's own doing, and an enforcer
    accepts no assignment that names one.
    """
    cpus, mems = entry.cpus & topology.online, entry.mems & topology.mems
    if cpus == entry.cpus and mems == entry.mems:
        return entry
    if entry.cpus and not cpus:
        return None
    return entry.model_copy(update={"cpus": cpus, "mems": mems})
