"""Which NUMA nodes give the CPUs, under numapin's own memory policies: beside the memory."""

from numapin_operator.placement.cpumanager.take import Method
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask, members
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.topologymanager.cheapest_set import Wanted
from numapin_operator.placement.topologymanager.distances import distances_of
from numapin_operator.placement.topologymanager.hints import MemoryHints
from numapin_operator.placement.topologymanager.pairing import Pairing
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch


def cpus_beside_memory(
    policy: NodePolicy, free: CpuMask, count: int, memory: MemoryHints
) -> NumaMask | None:
    """The fewest NUMA nodes for the CPUs; of these those beside which the memory can be.

    One NUMA node that has both the CPUs and the memory comes first: of several the one with the
    fewest free CPUs, as when CPUs are packed, then the lowest. Else see `Pairing`. Distributed CPUs
    come from NUMA nodes that have even shares.

    Returns:
        None if there are no such NUMA nodes.
    """
    groups, taker = policy.cpu_groups, policy.cpu_taker
    there = {
        numa_node: free & groups.numa_nodes.get(numa_node, NO_CPUS)
        for numa_node in members(memory.singles)
    }
    there = {one: cpus for one, cpus in there.items() if cpus.bit_count() >= count}
    if fitting := [one for one, cpus in there.items() if taker.can_take(cpus, count)]:
        best = min(fitting, key=lambda one: (there[one].bit_count(), one))
        return NumaMask(1 << best)
    usable = taker.near(free, None)
    counts = {one: (mask & usable).bit_count() for one, mask in groups.numa_nodes.items()}
    cpus = _wanted_cpus(policy, counts, count)
    if cpus is None:
        return None
    distributed = taker.method is Method.DISTRIBUTED
    held = _wanted_memory(memory, cpus.size if distributed else 1)
    if held is None:
        return None
    rank = {one: -free if distributed else free for one, free in counts.items()}
    found = Pairing(cpus, held, distances_of(policy.topology), rank).best()
    suffices = taker.method is not Method.WHOLE_CORES or taker.can_take(usable, count, found)
    return found if found and suffices else None


def _wanted_cpus(policy: NodePolicy, counts: dict[int, int], count: int) -> Wanted | None:
    """The fewest NUMA nodes that have the CPUs, in even shares if they are distributed."""
    taker = policy.cpu_taker
    for size in range(1, len(counts) + 1):
        able = tuple(counts)
        if taker.method is Method.DISTRIBUTED:
            share = count // size // taker.group_size * taker.group_size
            able = tuple(one for one, free in counts.items() if free and free >= share)
        fullest = sorted((counts[one] for one in able), reverse=True)[:size]
        if len(fullest) == size and sum(fullest) >= count:
            return Wanted(able, ((counts, count),), size)
    return None


def _wanted_memory(memory: MemoryHints, least: int) -> Wanted | None:
    """The fewest NUMA nodes that have the memory, `least` if it may be on several."""
    if not memory.loose or (memory.singles and least == 1):
        singles = tuple(members(memory.singles))
        return Wanted(singles, (), 1) if singles else None
    size = SubsetSearch(memory.loose, memory.needs).smallest(least).bit_count()
    return Wanted(memory.loose, memory.needs, size) if size else None
