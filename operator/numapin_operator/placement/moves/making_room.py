"""Begin the moves by which a pod fits that does not fit now, or have it wait for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_operator.placement.assignment.entries import allocation_of
from numapin_operator.placement.assignment.moving import finished, leaving_cpus
from numapin_operator.placement.errors import PlacementError, TopologyAffinityError
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.moves.beginning import MoveRules, Starter
from numapin_operator.placement.moves.result import Moves, applied
from numapin_operator.placement.moves.search import MOST_STATES, fewest_moves
from numapin_operator.placement.new_pods.queue import InMotion, Queue, Queued
from numapin_operator.placement.requests import PodView

LEAST_STATES: Final = 50
"""With fewer combinations left for one plan no other search begins."""


def in_motion(kept: Mapping[str, Sequence[ContainerAssignment]]) -> InMotion:
    """What is being moved, by the entries that stay."""
    after = {
        uid: allocation_of(uid, [finished(one) for one in entries])
        for uid, entries in kept.items()
        if any(one.moving for one in entries)
    }
    leaving = leaving_cpus(one for entries in kept.values() for one in entries)
    return InMotion(CpuMask(leaving.mask), after)


@dataclass
class RoomMaker:
    """Searches moves for the pods of one plan that do not fit.

    Attributes:
        starter: what may be moved, and begins it.
    """

    starter: Starter
    _states: int = field(default=MOST_STATES)

    def make_room(self, pod: PodView, problem: PlacementError) -> bool:
        """Have a pod wait for moves, and begin them if they may begin; False if none would do.

        The eldest pod is made room for first: while it waits, no moves begin for another one.
        """
        if not isinstance(problem, TopologyAffinityError):
            return False
        found = self._search(pod, self._rules.allowed)
        if found is None:
            return False
        if self.starter.may_begin:
            at_once = self._allowed_now(pod, found)
            if at_once is not None and self.starter.begin(at_once.moves, pod):
                found = at_once
        self._expect(pod, found)
        return True

    def _expect(self, pod: PodView, found: Moves) -> None:
        leaving = NO_CPUS
        for move in found.moves:
            leaving |= move.before.cpus & ~move.after.cpus
        movers = {(move.namespace, move.pod) for move in found.moves}
        wanted = CpuSet.from_mask(leaving & found.placed.cpus)
        allocations = applied(self.starter.space.node.allocations, found.moves)
        after = {move.uid: allocations[move.uid] for move in found.moves}
        self._queue.expect(
            Queued(pod, wanted, (), tuple(sorted(movers))),
            InMotion(CpuMask(leaving), after),
            found.placed,
            chain.from_iterable(move.arriving_memory for move in found.moves),
        )

    def _allowed_now(self, pod: PodView, found: Moves) -> Moves | None:
        """These moves, or others with containers that are not paused, as far as may begin now."""
        paused = {(move.uid, move.after.name) for move in found.moves} & self._rules.paused
        other = self._search(pod, self._rules.allowed - self._rules.paused) if paused else found
        return other if other is not None and len(other.moves) <= self._rules.left else None

    def _search(self, pod: PodView, allowed: frozenset[tuple[str, str]]) -> Moves | None:
        if self._states < LEAST_STATES:
            return None
        searched = fewest_moves(self.starter.space, pod, self._queue.alive, allowed, self._states)
        self._states -= searched.states
        return searched.found

    @property
    def _queue(self) -> Queue:
        return self.starter.queue

    @property
    def _rules(self) -> MoveRules:
        return self.starter.rules
