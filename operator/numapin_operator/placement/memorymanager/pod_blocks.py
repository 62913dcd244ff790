"""The memory blocks of one pod: of its containers, or of the pod as a whole."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from numapin_operator.placement.allocations import Block
from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.requests import Amounts, ContainerKind, ContainerView

_Place = tuple[NumaMask, str]
"""NUMA nodes that memory is bound on together, and the resource."""


class PodBlocks:
    """The blocks of one pod's containers.

    Ordinary init containers leave their memory to the containers after them. Memory that is used
    again is taken off the init containers' blocks, so that a pod's blocks add up to its memory.
    """

    def __init__(self, tables: MemoryTables) -> None:
        self.tables = tables
        self._of: dict[str, list[Block]] = {}
        self._left: dict[_Place, int] = {}
        self._shrinkable: dict[_Place, deque[tuple[list[Block], int]]] = {}

    def add(self, container: ContainerView, blocks: Sequence[Block]) -> None:
        """Add a container's blocks; those of an init container are left to the ones after it."""
        mine = self._of[container.name] = list(blocks)
        if container.kind is not ContainerKind.INIT:
            return
        for index, block in enumerate(mine):
            place = (block.numa_nodes, block.resource)
            self._left[place] = self._left.get(place, 0) + block.size_bytes
            self._shrinkable.setdefault(place, deque()).append((mine, index))

    def add_pod(self, blocks: Sequence[Block]) -> None:
        """Add the blocks of the pod as a whole."""
        self._of[""] = list(blocks)

    def left_by_init_containers(self) -> list[Block]:
        """What init containers leave behind: one block for each place that any of them has used."""
        return [Block(*place, size) for place, size in self._left.items()]

    def reuse(self, blocks: Sequence[Block]) -> None:
        """Take memory that is used again off the init containers, the earliest first.

        Each block of an init container is emptied once, so that a pod's work is linear.
        """
        for block in blocks:
            place, wanted = (block.numa_nodes, block.resource), block.size_bytes
            shrinkable = self._shrinkable.get(place)
            while shrinkable and wanted > 0:
                mine, index = shrinkable[0]
                part = min(wanted, mine[index].size_bytes)
                mine[index] = Block(*place, mine[index].size_bytes - part)
                self._left[place] -= part
                wanted -= part
                if not mine[index].size_bytes:
                    shrinkable.popleft()

    def frozen(self) -> dict[str, tuple[Block, ...]]:
        """Every container's blocks."""
        return {name: tuple(blocks) for name, blocks in self._of.items()}

    def undo(self) -> None:
        """Release all blocks."""
        for blocks in self._of.values():
            self.tables.release(blocks)
        self._of.clear()


def bound_already(
    containers: Iterable[tuple[ContainerView, NumaMask, Amounts]],
) -> dict[str, tuple[Block, ...]]:
    """The blocks of a pod's containers, in their order, that are bound on these NUMA nodes."""
    of_pod = PodBlocks(MemoryTables({}, ()))
    for container, numa_nodes, asked in containers:
        blocks = [Block(numa_nodes, resource, size) for resource, size in asked]
        of_pod.reuse(blocks)
        of_pod.add(container, blocks)
    return of_pod.frozen()


def divide(shares: Mapping[str, Amounts], whole: Sequence[Block]) -> dict[str, tuple[Block, ...]]:
    """Divide a pod's memory among its containers."""
    at: dict[str, NumaMask] = {}
    for block in whole:
        at[block.resource] = at.get(block.resource, NO_NUMA_NODES) | block.numa_nodes
    anywhere = next(iter(at.values()), NO_NUMA_NODES)
    return {
        name: tuple(Block(at.get(resource, anywhere), resource, size) for resource, size in asked)
        for name, asked in shares.items()
    }
