"""What binds one pod's memory: the interface, and the blocks of its containers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from numapin_operator.placement.allocations import Block
from numapin_operator.placement.masks import NO_NUMA_NODES, CpuMask, NumaMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.requests import Amounts, ContainerKind, ContainerView
from numapin_operator.placement.topologymanager.hints import MemoryHints
from numapin_operator.placement.topologymanager.merge import MergedHint


class MemoryBinder(Protocol):
    """Binds the memory of one pod that is being placed."""

    def hints(self, asked: Amounts) -> MemoryHints | None:
        """Where memory could be bound; None for no preference."""

    def bind(
        self, container: ContainerView, asked: Amounts, hint: MergedHint, cpus: CpuMask
    ) -> None:
        """Bind a container's memory, near its CPUs.

        Raises:
            NotEnoughMemoryError: it cannot be bound as the policy demands.
        """

    def bind_pod(self, asked: Amounts, hint: MergedHint, cpus: CpuMask) -> tuple[Block, ...]:
        """Bind the memory of a pod as a whole; raises as `bind`."""

    def blocks(self) -> dict[str, tuple[Block, ...]]:
        """What each container has been bound with."""

    def undo(self) -> None:
        """Release whatever was bound."""


class PodBlocks:
    """The blocks of one pod's containers.

    Ordinary init containers leave their memory to the containers after them. Memory that is used
    again is taken off the init containers' blocks, so that a pod's blocks add up to its memory.
    """

    def __init__(self, tables: MemoryTables) -> None:
        self.tables = tables
        self._of: dict[str, list[Block]] = {}
        self._init: list[str] = []

    def add(self, container: ContainerView, blocks: Sequence[Block]) -> None:
        """Add a container's blocks, and shrink those of init containers whose memory it uses."""
        self._of[container.name] = list(blocks)
        for block in blocks:
            self._shrink(block)
        if container.kind is ContainerKind.INIT:
            self._init.append(container.name)

    def add_pod(self, blocks: Sequence[Block]) -> None:
        """Add the blocks of the pod as a whole."""
        self._of[""] = list(blocks)

    def left_by_init_containers(self, but: str | None = None) -> list[Block]:
        """The blocks that init containers leave behind, except those of `but`."""
        return [block for name in self._init if name != but for block in self._of[name]]

    def frozen(self) -> dict[str, tuple[Block, ...]]:
        """Every container's blocks."""
        return {name: tuple(blocks) for name, blocks in self._of.items()}

    def undo(self) -> None:
        """Release all blocks."""
        for blocks in self._of.values():
            self.tables.release(blocks)
        self._of.clear()

    def _shrink(self, block: Block) -> None:
        left = block.size_bytes
        for name in self._init:
            mine = self._of[name]
            for index, other in enumerate(mine):
                if (other.numa_nodes, other.resource) == (block.numa_nodes, block.resource):
                    part = min(left, other.size_bytes)
                    left -= part
                    mine[index] = Block(other.numa_nodes, other.resource, other.size_bytes - part)


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
