"""More or less memory for a container that runs: its NUMA nodes only ever become more."""

from collections.abc import Mapping, Sequence

from numapin_api.quantity import exact_bytes
from numapin_operator.placement.allocations import Block, mems_of
from numapin_operator.placement.errors import NotEnoughMemoryError
from numapin_operator.placement.masks import CpuMask, NumaMask, members, numa_mask
from numapin_operator.placement.memorymanager.memory_capacity import tried_first
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.policy.pod_requests import ANYWHERE
from numapin_operator.placement.requests import MEMORY, Amounts
from numapin_operator.placement.resize.cpus import allows_memory
from numapin_operator.placement.topologymanager.distances import distances_of
from numapin_operator.placement.topologymanager.pairing import prices_beside

Blocks = tuple[Block, ...]


def sizes_of(blocks: Sequence[Block]) -> dict[str, int]:
    """The bytes of each resource."""
    sizes: dict[str, int] = {}
    for block in blocks:
        sizes[block.resource] = sizes.get(block.resource, 0) + block.size_bytes
    return sizes


def memory_change(blocks: Sequence[Block], asked: Amounts) -> int:
    """How many bytes of memory are to be added, or (negative) given back; 0 if it is not bound."""
    bound, wanted = sizes_of(blocks), dict(asked)
    if MEMORY not in bound or MEMORY not in wanted:
        return 0
    return wanted[MEMORY] - bound[MEMORY]


def less_memory(blocks: Blocks, size: int) -> Blocks:
    """The blocks with `size` bytes of memory less, the last ones first; their NUMA nodes stay.

    Pages that lie there already stay there.
    """
    left, kept = size, list[Block]()
    for block in reversed(blocks):
        part = min(left, block.size_bytes) if block.resource == MEMORY else 0
        left -= part
        kept.append(block._replace(size_bytes=block.size_bytes - part))
    return tuple(reversed(kept))


def more_memory(
    policy: NodePolicy, tables: MemoryTables, blocks: Blocks, size: int, cpus: CpuMask
) -> Blocks:
    """The blocks with `size` bytes of memory more: where they are, else on more NUMA nodes.

    Args:
        policy: what decides how far they may be.
        tables: what is free; `blocks` are bound in it.
        blocks: what is bound.
        size: how many bytes more.
        cpus: with which the topology policy wants it together: the container's, or its pod's.

    Raises:
        NotEnoughMemoryError: the policy allows no NUMA nodes that have it.
    """
    if policy.spec.memory.policy == "Static":
        more = _of_group(policy, tables, blocks, size)
    else:
        more = _of_single_nodes(policy, tables, blocks, size, cpus)
    wider, here = mems_of(more), mems_of(blocks)
    prefers = policy.spec.memory.policy == "Preferred"
    if wider != here and not prefers and not allows_memory(policy, cpus, wider):
        raise NotEnoughMemoryError(_elsewhere(here, size))
    return more


def _of_group(policy: NodePolicy, tables: MemoryTables, blocks: Blocks, size: int) -> Blocks:
    """As the kubelet binds it: all of a container's memory to the same NUMA nodes."""
    here = mems_of(blocks)
    if tables.holds(here, ((MEMORY, size),)):
        return _enlarged(blocks, size)
    sizes = sizes_of(blocks)
    sizes[MEMORY] += size
    asked = tuple(sorted(sizes.items()))
    without = tables.copy()
    without.release(blocks)
    hints = without.hints(asked, {})
    wider = hints.best(required=here)
    _check_width(policy, wider, hints.fewest, here, size)
    if without.clashes(wider):
        listed = ", ".join(map(str, members(wider)))
        raise NotEnoughMemoryError(
            f"wanted {exact_bytes(size)} more of memory; NUMA nodes {listed} serve other "
            "containers, so they cannot be bound together"
        )
    return _enlarged(tuple(block._replace(numa_nodes=wider) for block in blocks), size)


def _of_single_nodes(
    policy: NodePolicy, tables: MemoryTables, blocks: Blocks, size: int, cpus: CpuMask
) -> Blocks:
    """As numapin's own policies bind it: a block for each NUMA node, the nearest filled first."""
    here = mems_of(blocks)
    free = tables.free.get(MEMORY, {})
    parts, left = dict[int, int](), size
    for numa_node in _nearest_first(policy, cpus, here):
        parts[numa_node] = min(left, free.get(numa_node, 0))
        left -= parts[numa_node]
    added = {numa_node: part for numa_node, part in parts.items() if part > 0}
    wider = here
    for numa_node in added:
        wider |= NumaMask(1 << numa_node)
    if left > 0:
        wider = NumaMask(0)
    if wider != here:
        sizes = sizes_of(blocks)
        asked = ((MEMORY, sizes[MEMORY] + size),)
        fewest = tables.single_hints(asked, alone=False).fewest
        _check_width(policy, wider, fewest, here, size)
    return _with_parts(blocks, added)


def _check_width(
    policy: NodePolicy, wider: NumaMask, fewest: int, here: NumaMask, size: int
) -> None:
    topology = policy.spec.topology.policy
    alone = policy.spec.memory.policy == "SingleNUMA" or topology == "SingleNUMANode"
    most = 1 if alone else fewest if topology == "Restricted" else wider.bit_count()
    if not wider or wider.bit_count() > most:
        raise NotEnoughMemoryError(_elsewhere(here, size))


def _elsewhere(here: NumaMask, size: int) -> str:
    listed = ", ".join(map(str, members(here)))
    return (
        f"wanted {exact_bytes(size)} more of memory; NUMA nodes {listed}, where its memory is, "
        "have less free, and the policy allows no other ones besides that have it"
    )


def _nearest_first(policy: NodePolicy, cpus: CpuMask, here: NumaMask) -> list[int]:
    """The NUMA nodes where its memory is, then the others.

    In each part those with most of its CPUs come first, then the nearest to these, or to the memory
    if it has none; those that the policy uses last come last.
    """
    near = {
        numa_node: count
        for numa_node, mask in policy.cpu_groups.numa_nodes.items()
        if (count := (mask & cpus).bit_count())
    }
    numa_nodes = [one.id for one in policy.topology.numa_nodes]
    beside = near or dict.fromkeys(set(members(here)) & set(numa_nodes), 1)
    prices = prices_beside(beside, numa_nodes, distances_of(policy.topology))
    first = numa_mask(tried_first(policy.topology, policy.spec.memory)) or ANYWHERE
    return sorted(
        numa_nodes,
        key=lambda one: (not here >> one & 1, not first >> one & 1, prices[one], one),
    )


def _enlarged(blocks: Blocks, size: int) -> Blocks:
    """The blocks with `size` bytes more in the first one of memory."""
    first = next(index for index, block in enumerate(blocks) if block.resource == MEMORY)
    grown = blocks[first]._replace(size_bytes=blocks[first].size_bytes + size)
    return (*blocks[:first], grown, *blocks[first + 1 :])


def _with_parts(blocks: Blocks, added: Mapping[int, int]) -> Blocks:
    """The blocks with so many bytes more of memory on each NUMA node."""
    left, grown = dict(added), list[Block]()
    for block in blocks:
        part = 0
        if block.resource == MEMORY and block.numa_nodes.bit_count() == 1:
            part = left.pop(block.numa_nodes.bit_length() - 1, 0)
        grown.append(block._replace(size_bytes=block.size_bytes + part))
    new = [Block(NumaMask(1 << node), MEMORY, part) for node, part in left.items()]
    return (*grown, *new)
