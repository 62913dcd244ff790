"""Memory is left alone. Source: Kubernetes v1.36, memorymanager, policy None."""

from numapin_operator.placement.allocations import Block
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.requests import Amounts, ContainerView
from numapin_operator.placement.topologymanager.hints import MemoryHints
from numapin_operator.placement.topologymanager.merge import MergedHint


class NoBinder:
    """Binds no memory."""

    def hints(self, _asked: Amounts) -> MemoryHints | None:
        """No preference."""
        return None

    def bind(
        self, container: ContainerView, asked: Amounts, hint: MergedHint, cpus: CpuMask
    ) -> None:
        """Bind nothing."""

    def bind_pod(self, _asked: Amounts, _hint: MergedHint, _cpus: CpuMask) -> tuple[Block, ...]:
        """Bind nothing."""
        return ()

    def blocks(self) -> dict[str, tuple[Block, ...]]:
        """No container has any."""
        return {}

    def undo(self) -> None:
        """Nothing was bound."""
