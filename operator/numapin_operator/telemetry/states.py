"""How much waits, and how far policies have come, as values. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.schema.plain_assignment import NodeAssignmentSpec

Times = tuple[float, float]
"""When something began and when it ended, by one monotonic clock."""


@dataclass(frozen=True, slots=True)
class Written:
    """One NodeAssignment that was written, and when it was planned and sent."""

    node: str
    spec: NodeAssignmentSpec
    generation: int
    planned: Times
    sent: Times


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many nodes wait, how many are delayed, and how long the first one has waited."""

    waiting: int
    delayed: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class NodesState:
    """How many nodes are in each state, and what waits on them."""

    by_state: Mapping[str, int]
    refused: int
    outdated: int


NOTHING_WAITS: Final = QueueState(0, 0, 0.0)
NO_NODES: Final = NodesState({}, 0, 0)
