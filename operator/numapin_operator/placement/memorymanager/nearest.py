"""numapin's own policies, which bind memory to the NUMA nodes of the CPUs.

`SingleNUMA` binds a container to one NUMA node or refuses it. `Preferred` takes one NUMA node if it
can, else the fewest, and refuses only what the whole machine does not have. Of the sets with the
fewest NUMA nodes it is the one with most of the container's CPUs, then the nearest to them (by the
sum of the distances from each CPU), then the lowest. `Preferred` divides memory among the NUMA
nodes of CPUs that are distributed. Unlike the kubelet, neither binds NUMA nodes in groups: what
each node gives is accounted to that node.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from numapin_api.quantity import exact_bytes
from numapin_api.topology import Topology
from numapin_operator.placement.allocations import Block
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.errors import NotEnoughMemoryError
from numapin_operator.placement.masks import NO_NUMA_NODES, CpuMask, NumaMask, members
from numapin_operator.placement.memorymanager.pod_blocks import PodBlocks
from numapin_operator.placement.memorymanager.shares import beside_cpus
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.requests import Amounts, ContainerView
from numapin_operator.placement.topologymanager.cheapest_set import Wanted, cheapest_set
from numapin_operator.placement.topologymanager.distances import distances_of
from numapin_operator.placement.topologymanager.hints import MemoryHints
from numapin_operator.placement.topologymanager.merge import MergedHint
from numapin_operator.placement.topologymanager.pairing import prices_beside
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch


class NearestRules(NamedTuple):
    """How memory is bound on one machine.

    Attributes:
        topology: the machine.
        cpu_groups: which of its CPUs lie together.
        alone: a container has one NUMA node or is refused.
        divides: it is divided among the NUMA nodes of the container's CPUs.
        first: the NUMA nodes that are tried before all others; none if that makes no difference.
    """

    topology: Topology
    cpu_groups: CpuGroups
    alone: bool
    divides: bool
    first: NumaMask = NO_NUMA_NODES


class NearestBinder:
    """One pod's memory under policy Preferred or SingleNUMA."""

    def __init__(self, rules: NearestRules, tables: MemoryTables) -> None:
        self._rules, self._tables = rules, tables
        self._blocks = PodBlocks(tables)

    def hints(self, asked: Amounts) -> MemoryHints | None:
        """Single NUMA nodes, with Preferred any set; what init containers leave counts as free."""
        tables = self._tables
        if left := self._blocks.left_by_init_containers():
            tables = tables.copy()
            tables.release(left)
        found, first = tables.single_hints(asked, alone=self._rules.alone), self._rules.first
        if first:
            loose = tuple(one for one in found.loose if first >> one & 1)
            limited = found._replace(singles=NumaMask(found.singles & first), loose=loose)
            found = limited if limited.best() else found
        return found if found.best() else None

    def bind(
        self, container: ContainerView, asked: Amounts, hint: MergedHint, cpus: CpuMask
    ) -> None:
        """Bind a container's memory near its CPUs."""
        if not asked:
            return
        left = self._blocks.left_by_init_containers()
        self._tables.release(left)
        try:
            blocks = self._assign(asked, hint, cpus)
            self._blocks.reuse(blocks)
            left = self._blocks.left_by_init_containers()
        finally:
            for block in left:
                self._tables.assign(block)
        self._blocks.add(container, blocks)

    def bind_pod(self, asked: Amounts, hint: MergedHint, cpus: CpuMask) -> tuple[Block, ...]:
        """Bind the memory of a pod as a whole."""
        blocks = tuple(self._assign(asked, hint, cpus)) if asked else ()
        self._blocks.add_pod(blocks)
        return blocks

    def blocks(self) -> dict[str, tuple[Block, ...]]:
        """What each container has been bound with."""
        return self._blocks.frozen()

    def undo(self) -> None:
        """Release whatever was bound."""
        self._blocks.undo()

    def _assign(self, asked: Amounts, hint: MergedHint, cpus: CpuMask) -> list[Block]:
        blocks = self._on_first(asked, hint, cpus) or self._on_any(asked, hint, cpus)
        for block in blocks:
            self._tables.assign(block)
        return blocks

    def _on_first(self, asked: Amounts, hint: MergedHint, cpus: CpuMask) -> list[Block] | None:
        """Blocks on the NUMA nodes that are tried first; None if they have no room."""
        if not self._rules.first:
            return None
        with self._tables.only(self._rules.first), suppress(NotEnoughMemoryError):
            return self._on_any(asked, hint, cpus)
        return None

    def _on_any(self, asked: Amounts, hint: MergedHint, cpus: CpuMask) -> list[Block]:
        return self._divided(asked, cpus) or self._filled(asked, self._beside(hint, cpus))

    def _divided(self, asked: Amounts, cpus: CpuMask) -> list[Block] | None:
        """Parts for the NUMA nodes of distributed CPUs; None if they are on one, or lack it."""
        if not self._rules.divides:
            return None
        there = self._counts(cpus)
        return beside_cpus(self._tables, asked, there) if len(there) > 1 else None

    def _beside(self, hint: MergedHint, cpus: CpuMask) -> Mapping[int, int]:
        """How much speaks for each NUMA node: its CPUs, or that it is one of the hint."""
        if cpus:
            return self._counts(cpus)
        return dict.fromkeys(members(hint.numa_nodes or NO_NUMA_NODES), 1)

    def _counts(self, cpus: CpuMask) -> Mapping[int, int]:
        """How many of the CPUs each NUMA node has that has any."""
        numa_nodes = self._rules.cpu_groups.numa_nodes.items()
        counts = {numa_node: (mask & cpus).bit_count() for numa_node, mask in numa_nodes}
        return {numa_node: count for numa_node, count in counts.items() if count}

    def _filled(self, asked: Amounts, beside: Mapping[int, int]) -> list[Block]:
        """Blocks on the fewest NUMA nodes; of these on those with most CPUs, then the nearest."""
        singles = self._tables.single_hints(asked, alone=True).singles
        if len(beside) == 1 and singles >> (here := next(iter(beside))) & 1:
            return [Block(NumaMask(1 << here), resource, size) for resource, size in asked]
        wanted, fewest = self._fewest(asked, singles)
        distances = distances_of(self._rules.topology)
        if not beside:
            search = SubsetSearch(wanted.numa_nodes, wanted.needs, distances=distances)
            order = list(members(search.best(wanted.size) or fewest))
        else:
            prices = prices_beside(beside, wanted.numa_nodes, distances)
            chosen = members(cheapest_set(wanted, prices) or fewest)
            order = sorted(chosen, key=lambda numa_node: (prices[numa_node], numa_node))
        return [block for resource, size in asked for block in self._fill(resource, size, order)]

    def _fewest(self, asked: Amounts, singles: NumaMask) -> tuple[Wanted, NumaMask]:
        """What a set of the fewest NUMA nodes must hold and how large it is; and one of them."""
        numa_nodes = self._tables.numa_nodes
        if singles:
            one = next(members(singles))
            return Wanted(tuple(members(singles)), (), 1), NumaMask(1 << one)
        listed = ", ".join(f"{exact_bytes(size)} of {resource}" for resource, size in asked)
        if self._rules.alone:
            raise NotEnoughMemoryError(f"wanted {listed} on one NUMA node, none has so much")
        needs = self._tables.single_hints(asked, alone=False).needs
        fewest = SubsetSearch(numa_nodes, needs).smallest()
        if not fewest:
            raise NotEnoughMemoryError(f"wanted {listed}, the whole machine has less")
        return Wanted(numa_nodes, needs, fewest.bit_count()), fewest

    def _fill(self, resource: str, size: int, order: list[int]) -> list[Block]:
        """One block for each NUMA node that gives a part, the nearest filled first."""
        free = self._tables.free.get(resource, {})
        blocks: list[Block] = []
        for numa_node in order:
            part = min(size, free.get(numa_node, 0))
            size -= part
            if part or len(order) == 1:
                blocks.append(Block(NumaMask(1 << numa_node), resource, part))
        return blocks
