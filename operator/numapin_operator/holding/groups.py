"""Groups of pods that may wait for each other, each with some of its pods placed.

A group is what one controller has created. Whether its pods only work together is not known here.
Does no I/O.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from numapin_operator.observe.holding.held_pod import HeldPod
from numapin_operator.placement import PodView

STUCK_SECONDS: Final = 30.0
"""How long groups must have been partly placed before it is told."""

COUNT_SECONDS: Final = 5.0
"""How often the pods of all nodes are counted."""

_SINGLE: Final = frozenset(
    {"", "DaemonSet", "Node", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
"""Controllers whose pods serve without the others. A Job, and what is not known, may be a group."""


def groups_of(waiting: Iterable[HeldPod]) -> frozenset[str]:
    """The groups of pods that wait; empty if fewer than two wait, which cannot block each other."""
    origins = {pod.pod.origin for pod in waiting}
    found = frozenset(one.uid for one in origins if one.kind not in _SINGLE)
    return found if len(found) > 1 else frozenset()


def placed_of(groups: Collection[str], pods: Iterable[PodView]) -> set[str]:
    """Which of the groups have a pod among those of a node."""
    return {one.origin.uid for one in pods if one.origin.uid in groups and not one.terminal}


@dataclass(slots=True)
class PartlyPlaced:
    """Groups with pods that wait and pods that have a place, and since when they are seen so.

    Attributes:
        since: for each of them.
        stuck: those that may wait for each other.
        next: when they are to be counted again.
    """

    since: dict[str, float] = field(default_factory=dict)
    stuck: frozenset[str] = frozenset()
    next: float = 0.0

    def note(self, groups: Collection[str], now: float) -> None:
        """Take in the present ones."""
        self.since = {one: self.since.get(one, now) for one in groups}
        stuck = [one for one, since in self.since.items() if now - since >= STUCK_SECONDS]
        self.stuck = frozenset(stuck if len(stuck) > 1 else ())
        self.next = now + COUNT_SECONDS
