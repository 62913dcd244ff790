"""What each NUMA node has free, and which NUMA nodes are bound together.

Source: Kubernetes v1.36, memorymanager, static policy. A NUMA node serves either containers bound
to it alone or those bound to one group of nodes; the first block decides, the last release frees.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from numapin_operator.placement.allocations import Block
from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.requests import Amounts, Capacity
from numapin_operator.placement.topologymanager.hints import MemoryHints, Reusable
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch

_NOTHING: Final[Mapping[int, int]] = {}
_NONE_LEFT: Final[Mapping[str, int]] = {}


class MemoryTables:
    """Free memory and huge pages of each NUMA node in bytes, with the groups in use.

    `withheld` is neither free nor bound: what others use.
    """

    __slots__ = (
        "_bound",
        "_capacity",
        "_fewest_for",
        "_grouped",
        "_groups",
        "_uses",
        "free",
        "numa_nodes",
        "withheld",
    )

    def __init__(self, capacity: Capacity, numa_nodes: Iterable[int]) -> None:
        self._capacity = capacity
        self.numa_nodes = tuple(sorted(numa_nodes))
        self.free = {resource: dict(at) for resource, at in capacity.items()}
        self.withheld: dict[str, dict[int, int]] = {}
        self._bound: dict[str, dict[int, int]] = {resource: {} for resource in capacity}
        self._uses = dict.fromkeys(self.numa_nodes, 0)
        self._groups = {numa_node: NumaMask(1 << numa_node) for numa_node in self.numa_nodes}
        self._grouped = False
        self._fewest_for: dict[Amounts, int] = {}

    def copy(self) -> "MemoryTables":
        """A copy that can be changed independently."""
        made = MemoryTables(self._capacity, self.numa_nodes)
        made.free = {resource: dict(at) for resource, at in self.free.items()}
        made._bound = {resource: dict(at) for resource, at in self._bound.items()}
        made._grouped = self._grouped
        made._uses, made._groups = dict(self._uses), dict(self._groups)
        return made

    def takes(self, block: Block) -> bool:
        """Whether a block can be bound: its NUMA nodes have room and serve no other group."""
        free, there = self.free.get(block.resource, {}), list(members(block.numa_nodes))
        apart = all(
            numa_node in self._uses
            and (not self._uses[numa_node] or self._groups[numa_node] == block.numa_nodes)
            for numa_node in there
        )
        return apart and sum(free.get(one, 0) for one in there) >= block.size_bytes

    def assign(self, block: Block) -> None:
        """Bind a block; its bytes come from its lowest nodes that have any free."""
        free = self.free.setdefault(block.resource, {})
        bound = self._bound.setdefault(block.resource, {})
        left = block.size_bytes
        self._grouped = self._grouped or block.numa_nodes.bit_count() > 1
        for numa_node in members(block.numa_nodes):
            if numa_node not in self._uses:
                continue  # the machine has lost this NUMA node
            self._uses[numa_node] += 1
            self._groups[numa_node] = block.numa_nodes
            part = min(left, free.get(numa_node, 0))
            if part > 0:
                free[numa_node] -= part
                bound[numa_node] = bound.get(numa_node, 0) + part
                left -= part

    def assign_all(self, blocks: Sequence[Block]) -> None:
        """Bind blocks, the first one first.

        Blocks on single NUMA nodes do not depend on each other's order, and add up.
        """
        sums: dict[tuple[NumaMask, str], int] = {}
        for numa_nodes, resource, size_bytes in blocks:
            place = numa_nodes, resource
            sums[place] = sums.get(place, 0) + size_bytes
        if any(numa_nodes.bit_count() != 1 for numa_nodes, _ in sums):
            for block in blocks:
                self.assign(block)
            return
        for (numa_nodes, resource), size_bytes in sums.items():
            self.assign(Block(numa_nodes, resource, size_bytes))
        counts = Counter(block.numa_nodes for block in blocks)
        places = Counter(numa_nodes for numa_nodes, _ in sums)
        for numa_nodes, count in counts.items():
            (numa_node,) = members(numa_nodes)
            if numa_node in self._uses:
                self._uses[numa_node] += count - places[numa_nodes]

    def release(self, blocks: Iterable[Block]) -> None:
        """Release blocks; a node to which nothing is bound any more leaves its group."""
        for block in blocks:
            free, bound = self.free[block.resource], self._bound[block.resource]
            left = block.size_bytes
            for numa_node in members(block.numa_nodes):
                if numa_node not in self._uses:
                    continue
                self._uses[numa_node] -= 1
                if not self._uses[numa_node]:
                    self._groups[numa_node] = NumaMask(1 << numa_node)
                part = min(left, bound.get(numa_node, 0))
                if part > 0:
                    bound[numa_node] -= part
                    free[numa_node] = free.get(numa_node, 0) + part
                    left -= part

    def withhold(self, resource: str, numa_node: int, size_bytes: int) -> int:
        """Take free bytes that are in use without a block; returns how many were free."""
        free = self.free.get(resource, {})
        part = min(size_bytes, free.get(numa_node, 0))
        if part > 0:
            free[numa_node] -= part
            at = self.withheld.setdefault(resource, {})
            at[numa_node] = at.get(numa_node, 0) + part
        return max(0, part)

    @contextmanager
    def only(self, numa_nodes: NumaMask) -> Iterator[None]:
        """Bind new blocks to none but these NUMA nodes for a while, if they have any memory.

        One that is bound together with others than these has none to give.
        """
        away = dict[tuple[str, int], int]()
        with_memory = (one for at in self._capacity.values() for one, size in at.items() if size)
        if any(numa_nodes >> one & 1 for one in with_memory):
            for resource, at in self.free.items():
                for one in at:
                    if self._groups[one] & ~numa_nodes:
                        away[resource, one], at[one] = at[one], 0
        try:
            yield
        finally:
            for (resource, one), size in away.items():
                self.free[resource][one] += size

    def hints(self, asked: Amounts, reusable: Reusable) -> MemoryHints:
        """Where the amounts could be bound; what init containers leave behind counts as free."""
        return MemoryHints(
            asked=asked,
            free=self.free,
            reusable=reusable,
            singles=self._singles(asked, reusable),
            groups=tuple(self._fitting_groups(asked, reusable)) if self._grouped else (),
            loose=tuple([numa_node for numa_node in self.numa_nodes if not self._uses[numa_node]]),
            fewest=self._fewest(asked),
        )

    def single_hints(self, asked: Amounts, *, alone: bool) -> MemoryHints:
        """As `hints`, without groups: single NUMA nodes and, unless `alone`, any set of them."""
        everywhere = self.numa_nodes
        return MemoryHints(
            asked=asked,
            free=self.free,
            reusable={},
            singles=numa_mask(
                numa_node for numa_node in everywhere if self.holds(NumaMask(1 << numa_node), asked)
            ),
            groups=(),
            loose=() if alone else everywhere,
            fewest=1 if alone else self._fewest(asked),
        )

    def holds(self, numa_nodes: NumaMask, asked: Amounts) -> bool:
        """True if these nodes together have so much free."""
        if numa_nodes.bit_count() <= 1:
            numa_node = numa_nodes.bit_length() - 1
            return all(
                self.free.get(name, _NOTHING).get(numa_node, 0) >= size for name, size in asked
            )
        return all(
            sum(self.free.get(resource, {}).get(numa_node, 0) for numa_node in members(numa_nodes))
            >= size
            for resource, size in asked
        )

    def clashes(self, numa_nodes: NumaMask) -> bool:
        """True if one of several nodes is bound to other containers, alone or in another group."""
        if numa_nodes.bit_count() == 1:
            return False
        return any(
            self._uses[numa_node] and self._groups[numa_node] != numa_nodes
            for numa_node in members(numa_nodes)
        )

    def in_group(self, numa_node: int) -> bool:
        """Whether containers are bound to this node together with others."""
        return self._groups.get(numa_node, NO_NUMA_NODES).bit_count() > 1

    def in_groups_that_hold(self, asked: Amounts) -> NumaMask:
        """The nodes that have so much each, and serve only containers of their group."""
        there = [one for one in self.numa_nodes if self.in_group(one)]
        return numa_mask(one for one in there if self.holds(NumaMask(1 << one), asked))

    def _singles(self, asked: Amounts, reusable: Reusable) -> NumaMask:
        """The nodes outside of groups that each hold everything."""
        columns = [(self.free.get(name, _NOTHING), name, size) for name, size in asked]
        found = NO_NUMA_NODES
        for numa_node in self.numa_nodes:
            mask = NumaMask(1 << numa_node)
            if self._groups[numa_node] != mask and self._groups[numa_node].bit_count() > 1:
                continue
            left = reusable.get(mask, _NONE_LEFT) if reusable else _NONE_LEFT
            for free, name, size in columns:
                if free.get(numa_node, 0) + left.get(name, 0) < size:
                    break
            else:
                found |= mask
        return found

    def _fitting_groups(self, asked: Amounts, reusable: Reusable) -> Iterable[NumaMask]:
        for group in sorted({mask for mask in self._groups.values() if mask.bit_count() > 1}):
            left = reusable.get(group, {})
            still = tuple((name, size - left.get(name, 0)) for name, size in asked)
            if not self.clashes(group) and self.holds(group, still):
                yield group

    def _fewest(self, asked: Amounts) -> int:
        """How many nodes an empty machine would need; all if even those are too few."""
        if asked not in self._fewest_for:
            self._fewest_for[asked] = self._count_fewest(asked)
        return self._fewest_for[asked]

    def _count_fewest(self, asked: Amounts) -> int:
        needs = tuple((self._capacity.get(name, {}), size) for name, size in asked)
        found = SubsetSearch(self.numa_nodes, needs).smallest()
        return found.bit_count() if found else len(self.numa_nodes)
