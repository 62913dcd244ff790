"""What binds one pod's memory: the interface of the memory policies."""

from typing import Protocol

from numapin_operator.placement.allocations import Block
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.requests import Amounts, ContainerView
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
