"""numapin's own policies, which bind memory to the NUMA nodes of the CPUs.

`SingleNUMA` binds a container to one NUMA node or refuses it. `Preferred` takes one NUMA node if it
can, else the fewest, and refuses only what the whole machine does not have. Unlike the kubelet,
neither binds NUMA nodes in groups: what each node gives is accounted to that node.
"""

from numapin_api.quantity import format_bytes
from numapin_operator.placement.allocations import Block
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.errors import NotEnoughMemoryError
from numapin_operator.placement.masks import NO_NUMA_NODES, CpuMask, NumaMask, members
from numapin_operator.placement.memorymanager.pod_blocks import PodBlocks
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.requests import Amounts, ContainerView
from numapin_operator.placement.topologymanager.hints import MemoryHints
from numapin_operator.placement.topologymanager.merge import MergedHint
from numapin_operator.placement.topologymanager.subset_search import SubsetSearch


class NearestBinder:
    """One pod's memory under policy Preferred, or SingleNUMA if `alone`."""

    def __init__(self, cpu_groups: CpuGroups, tables: MemoryTables, *, alone: bool) -> None:
        self._cpu_groups, self._tables, self._alone = cpu_groups, tables, alone
        self._blocks = PodBlocks(tables)

    def hints(self, asked: Amounts) -> MemoryHints | None:
        """Single NUMA nodes, with Preferred any set; what init containers leave counts as free."""
        tables = self._tables
        if left := self._blocks.left_by_init_containers():
            tables = tables.copy()
            tables.release(left)
        found = tables.single_hints(asked, alone=self._alone)
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
        near = {
            numa_node: (mask & cpus).bit_count()
            for numa_node, mask in self._cpu_groups.numa_nodes.items()
        }
        numa_nodes = self._choose(asked, hint.numa_nodes or NO_NUMA_NODES, near)
        order = sorted(
            members(numa_nodes), key=lambda numa_node: (-near.get(numa_node, 0), numa_node)
        )
        blocks = [block for resource, size in asked for block in self._fill(resource, size, order)]
        for block in blocks:
            self._tables.assign(block)
        return blocks

    def _choose(self, asked: Amounts, hinted: NumaMask, near: dict[int, int]) -> NumaMask:
        """One NUMA node: preferably of the hint, with most of the CPUs, then the lowest."""
        singles = self._tables.single_hints(asked, alone=True).singles
        if singles:
            best = min(
                members(singles),
                key=lambda numa_node: (
                    not hinted >> numa_node & 1,
                    -near.get(numa_node, 0),
                    numa_node,
                ),
            )
            return NumaMask(1 << best)
        wanted = ", ".join(f"{format_bytes(size)} of {resource}" for resource, size in asked)
        if self._alone:
            raise NotEnoughMemoryError(f"wanted {wanted} on one NUMA node, none has so much")
        needs = self._tables.single_hints(asked, alone=False).needs
        numa_nodes = self._tables.numa_nodes
        fewest = SubsetSearch(numa_nodes, needs).smallest()
        if not fewest:
            raise NotEnoughMemoryError(f"wanted {wanted}, the whole machine has less")
        for numa_node in sorted(
            numa_nodes, key=lambda numa_node: (-near.get(numa_node, 0), numa_node)
        ):
            if found := SubsetSearch(numa_nodes, needs, required=NumaMask(1 << numa_node)).best(
                fewest.bit_count()
            ):
                return found
        return fewest

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
