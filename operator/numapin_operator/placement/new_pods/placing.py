"""Place the pods that have nothing yet, one after the other.

Does no I/O.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.nodeassignment import MAX_REFUSED
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_operator.placement.assignment.entries import entries_of
from numapin_operator.placement.assignment.size_limit import SizeLimit, check_blocks
from numapin_operator.placement.errors import AssignmentFullError, PlacementError
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.new_pods.queue import Queue
from numapin_operator.placement.pods.fitting import MOST_TRIED_IN_PLAN, Trials
from numapin_operator.placement.requests import PodView

MORE_TRIED: Final = 128
"""Refused pods that are tried at each plan although `refused` has no room for them."""


MakeRoom = Callable[[PodView, PlacementError], bool]
"""Has a refused pod wait until other containers have moved; False if that would not help."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of the new pods: entries, those that failed, and how many were not tried."""

    entries: list[ContainerAssignment] = field(default_factory=list)
    failed: list[tuple[PodView, PlacementError]] = field(default_factory=list)
    untried: int = 0


def place_new(
    pods: Sequence[PodView],
    refused: Collection[str],
    room: SizeLimit,
    queue: Queue,
    make_room: MakeRoom | None = None,
) -> Trial:
    """Place every new pod, until so many are refused that the rest is not tried.

    What a pod waits for is kept before the next pod is placed. So no younger pod gets it.
    """
    trial, untried, node = Trial(), 0, queue.node
    left = Trials(MOST_TRIED_IN_PLAN)
    for pod in pods:
        if pod.uid in node.allocations or pod.uid in refused or not node.wants(pod):
            continue
        if len(refused) + len(trial.failed) >= MAX_REFUSED + MORE_TRIED:
            untried += 1
            continue
        try:
            trial.entries.extend(_place(node, pod, room))
        except PlacementError as problem:
            if queue.add(pod) or (make_room is not None and make_room(pod, problem)):
                continue
            node.explain(pod, problem, left)
            trial.failed.append((pod, problem))
            queue.note_refused(pod)
        else:
            if pod.uid in node.allocations:
                queue.note_placed(node.allocations[pod.uid])
    return replace(trial, untried=untried)


def _place(node: Node, pod: PodView, room: SizeLimit) -> tuple[ContainerAssignment, ...]:
    """Place a pod, and make its entries; nothing changes if the assignment is full."""
    allocation = node.attempt(pod)
    try:
        check_blocks(allocation)
        entries = tuple(entries_of((allocation,), node.policy.topology))
        room.take(entries)
    except AssignmentFullError:
        node.release(pod.uid)
        raise
    return entries
