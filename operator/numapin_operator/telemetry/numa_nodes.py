"""What the NUMA nodes of each node give to containers and have left, as metrics. Does no I/O."""

from collections.abc import Iterator
from itertools import chain

from numapin_daemon.telemetry.metric import Labels, Values
from numapin_operator.placement import CPU, Node, promised_amounts
from numapin_operator.telemetry.table import NUMA_ALLOCATABLE, NUMA_AVAILABLE

Series = tuple[Labels, int, int]
"""The labels, what is allocatable, and what of it is available."""


class NumaNodes:
    """The newest values of each node that this operator has planned."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[Series, ...]] = {}

    def note(self, node: str, machine: Node | None) -> None:
        """Take in what the pods of a node have now; None if no policy places any there."""
        if machine is None:
            self._of.pop(node, None)
        else:
            self._of[node] = tuple(_series(node, machine))

    def read(self) -> Values:
        """The present values; may be called in any thread."""
        series = list(chain.from_iterable(list(self._of.values())))
        return {
            NUMA_ALLOCATABLE: {labels: float(allocatable) for labels, allocatable, _ in series},
            NUMA_AVAILABLE: {labels: float(available) for labels, _, available in series},
        }


def _series(node: str, machine: Node) -> Iterator[Series]:
    for numa_node, amounts in promised_amounts(machine).items():
        for resource, amount in amounts.items():
            unit = "cpu" if resource == CPU else "byte"
            labels = (node, str(numa_node), resource, unit)
            yield labels, amount.allocatable, amount.available
