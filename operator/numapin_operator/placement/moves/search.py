"""Search the fewest CPUs to move so that a pod fits.

All containers move at the same time and to CPUs that are free now: each has its old and its new
CPUs for a while. So no container moves to where another one leaves.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from operator import add, le, sub
from typing import Final, NamedTuple

from numapin_operator.placement.errors import PlacementError
from numapin_operator.placement.moves.movable import Movable, Place, after_move, movables, places
from numapin_operator.placement.moves.result import Move, Moves, Searched, applied, leaves_room
from numapin_operator.placement.moves.search_space import Counts, SearchSpace
from numapin_operator.placement.moves.targets import Target, needs_of, targets
from numapin_operator.placement.policy.pod_requests import ANYWHERE, required
from numapin_operator.placement.requests import PodView

MOST_STATES: Final = 1000
MOST_TRIALS: Final = 32
"""How much one search does: combinations of moves that it considers, and that it tries out."""


def fewest_moves(
    space: SearchSpace,
    demand: PodView,
    pods: Mapping[str, PodView],
    allowed: Collection[tuple[str, str]],
    most_states: int = MOST_STATES,
) -> Searched:
    """The moves with the fewest moved CPUs by which a pod fits as the policy demands.

    Equal input gives equal output. For a pod with several containers that are aligned one by one,
    only containers are moved that leave NUMA nodes where one of them could be.

    Args:
        space: the node, on which the pod does not fit.
        demand: the pod.
        pods: the node's pods by UID.
        allowed: the containers that may be moved, as pod UID and name.
        most_states: how many combinations are considered.
    """
    needs = needs_of(space, demand)
    if not needs or space.node.cpus.free.bit_count() < max(needs):
        return Searched()
    policy = space.policy
    near = required(policy.spec, policy.topology, demand)
    aims, complete = targets(space, needs, ANYWHERE if near is None else near.numa_nodes)
    units = movables(space, pods, allowed) if aims else ()
    if not units:
        return Searched(complete=complete)
    search = _Search(space, demand, units, aims, most_states)
    found = search.run()
    return Searched(found, complete and not search.is_cut, search.states)


class _State(NamedTuple):
    """Some moves towards one target; in the order in which states are looked at.

    Attributes:
        bound: the moved CPUs of any moves that contain these.
        lacks: how many more CPUs must get free.
        size: how many containers move.
        target: the number of the target.
        path: the moves, as the numbers of the movable and of its place.
    """

    bound: int
    lacks: int
    size: int
    target: int
    path: tuple[tuple[int, int], ...]


@dataclass
class _Search:
    """A best-first search of at most `most_states` states; `is_cut` if it reached a limit.

    Source: Hart, Nilsson and Raphael, "A Formal Basis for the Heuristic Determination of Minimum
    Cost Paths", 1968. A move frees no more CPUs than it moves, so the CPUs that are still lacking
    are a lower bound for the CPUs still to move.
    """

    space: SearchSpace
    demand: PodView
    units: Sequence[Movable]
    aims: Sequence[Target]
    most_states: int
    is_cut: bool = False
    states: int = 0
    _trials: int = 0
    _heap: list[_State] = field(default_factory=list)
    _rooms: dict[int, Counts] = field(default_factory=dict)
    _places_of: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    _gainful_of: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)

    def run(self) -> Moves | None:
        """The best moves, or the first that are found after a limit was reached."""
        for number, target in enumerate(self.aims):
            lacks = target.lacks(self._free)
            heappush(self._heap, _State(lacks, lacks, 0, number, ()))
        while self._heap:
            state = heappop(self._heap)
            if state.path and not state.lacks and (found := self._try(state)):
                return found
            if self._trials >= MOST_TRIALS:
                self.is_cut = True
                return None
            for child in () if self.is_cut else self._children(state):
                if self.states >= self.most_states:
                    self.is_cut = True
                    break
                self.states += 1
                heappush(self._heap, child)
        return None

    @cached_property
    def _free(self) -> Counts:
        return self.space.counts(self.space.node.cpus.free)

    @cached_property
    def _counts(self) -> list[Counts]:
        return [self.space.counts(unit.cpus) for unit in self.units]

    @cached_property
    def _kinds(self) -> list[int]:
        """The number of the first movable that is like each one; those that are alike share it."""
        first: dict[tuple[object, ...], int] = {}
        return [
            first.setdefault(unit.likeness(self.space), number)
            for number, unit in enumerate(self.units)
        ]

    def _room(self, kind: int) -> Counts:
        """The free CPUs that may replace those of a kind of movable."""
        if kind not in self._rooms:
            self._rooms[kind] = self.space.room(self.units[kind].cpus)
        return self._rooms[kind]

    def _place(self, number: int, index: int) -> Place:
        return self._places(self._kinds[number])[index]

    def _places(self, kind: int) -> tuple[Place, ...]:
        if kind not in self._places_of:
            self._places_of[kind] = places(self.space, self.units[kind])
        return self._places_of[kind]

    def _gainful(self, number: int, kind: int) -> tuple[int, ...]:
        """The places of a kind of movable, by number, that free CPUs for a target."""
        key = number, kind
        if key not in self._gainful_of:
            target, before = self.aims[number], self._counts[kind]
            self._gainful_of[key] = tuple(
                index
                for index, place in enumerate(self._places(kind))
                if target.gains(before, place.counts)
            )
        return self._gainful_of[key]

    def _children(self, state: _State) -> Iterator[_State]:
        """The states with one more move; of containers that are alike the first are moved."""
        if self._are_too_many(state.size + 1):
            return
        free, spent = self._after(state)
        last, last_place = state.path[-1] if state.path else (-1, 0)
        for number in range(last + 1, len(self.units)):
            kind = self._kinds[number]
            is_like = number > 0 and kind == self._kinds[number - 1]
            if is_like and number > last + 1:
                continue
            room = tuple(map(sub, self._room(kind), spent))
            for index in self._gainful(state.target, kind):
                if is_like and index < last_place:
                    continue
                if all(map(le, self._places_of[kind][index].arrivals, room)):
                    yield self._child(state, free, (number, index))

    def _child(self, state: _State, free: Counts, step: tuple[int, int]) -> _State:
        number, index = step
        place = self._place(number, index)
        left = _plus(free, self._counts[number], place.counts)
        lacks = self.aims[state.target].lacks(left)
        cost = state.bound - state.lacks + place.cost
        path = (*state.path, step)
        return _State(cost + lacks, lacks, state.size + 1, state.target, path)

    def _after(self, state: _State) -> tuple[Counts, Counts]:
        """The free CPUs after the moves, and those of them that arrive where something moves."""
        free, spent = self._free, tuple(0 for _ in self._free)
        for number, index in state.path:
            place = self._place(number, index)
            free = _plus(free, self._counts[number], place.counts)
            spent = tuple(map(add, spent, place.arrivals))
        return free, spent

    def _try(self, state: _State) -> Moves | None:
        """Carry the moves out on a copy of the node, and place the pod there."""
        self._trials += 1
        made = self._moves(state)
        if made is None or self._are_too_many(len(made)):
            return None
        if not leaves_room(self.space.node, made):
            return None
        node = self.space.rebuild(applied(self.space.node.allocations, made))
        try:
            placed = node.attempt(self.demand)
        except PlacementError:
            return None
        return Moves(made, placed, state.bound)

    def _are_too_many(self, moves: int) -> bool:
        most = self.space.most_moves
        return most is not None and moves > most

    def _moves(self, state: _State) -> tuple[Move, ...] | None:
        free, made = self.space.node.cpus.free, list[Move]()
        for number, index in state.path:
            unit = self.units[number]
            after = after_move(self.space, unit, self._place(number, index), free)
            if after is None:
                return None
            for old, new in zip(unit.containers, after, strict=True):
                if old != new:
                    pod = unit.pod
                    made.append(Move(pod.uid, pod.namespace, pod.pod, old, new))
                    free &= ~new.cpus
        return tuple(made)


def _plus(free: Counts, before: Counts, after: Counts) -> Counts:
    """The free CPUs once a container has changed its own."""
    return tuple(map(sub, map(add, free, before), after))
