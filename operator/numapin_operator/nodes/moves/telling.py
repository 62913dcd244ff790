"""Whether the workloads of a node have been told which CPUs leave them. Does no I/O."""

from collections.abc import Mapping
from typing import Protocol


class Telling(Protocol):
    """Tells workloads which CPUs they have; see `numapin_operator.annotation`."""

    def told(self, node: str) -> Mapping[str, float] | None:
        """Since when each pod with CPUs that leave has been told, by UID, in seconds since 1970.

        Pods that have not been told yet lack; None if workloads are not told.
        """

    def tell(self, node: str) -> None:
        """Have the workloads of a node told soon what the assignment says now."""


class NobodyTold:
    """Implements `Telling` where that is switched off."""

    def told(self, node: str) -> Mapping[str, float] | None:
        """Nobody is told."""

    def tell(self, node: str) -> None:
        """Tell nobody."""
