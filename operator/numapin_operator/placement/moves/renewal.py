"""Begin moves of containers that the policy would place otherwise.

Those are outdated containers, among them those that lost CPUs that went offline and cannot have
others beside the rest; and those on two NUMA nodes although one has room for them now. A move is
begun only if the container is as the policy demands afterwards, or on fewer NUMA nodes: so no
container is moved to and fro.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Final

from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.moves.beginning import Starter, entry_after
from numapin_operator.placement.moves.movable import Movable, after_move, movables, places
from numapin_operator.placement.moves.result import Move, leaves_room
from numapin_operator.placement.moves.search_space import SearchSpace
from numapin_operator.placement.outdated import is_outdated

MOST_TRIALS: Final = 32
MOST_TRIALS_OF_ONE: Final = 4
"""How many ways to move containers one plan tries out: at all, and of the same containers."""


@dataclass
class Renewal:
    """Looks for a container to move on one node, for its own good.

    Attributes:
        starter: what may be moved, and begins it.
    """

    starter: Starter
    _trials: int = field(default=0, init=False)

    def begin(self) -> bool:
        """Begin to move one container, or those of one pod that are aligned together.

        What others wait for stays free for them. False if nothing is moved.
        """
        return self._may_gain() and any(
            self.starter.begin(moves) for unit in self._units() for moves in self._ways(unit)
        )

    @property
    def _node(self) -> Node:
        return self.starter.queue.node

    @cached_property
    def _ground(self) -> SearchSpace:
        return self.starter.space

    def _may_gain(self) -> bool:
        """Whether any entry calls for a look at what may be moved."""
        return any(
            one.outdated or self._spread(CpuMask(one.cpus.mask)) > 1
            for entries in self.starter.kept.values()
            for one in entries
        )

    def _spread(self, cpus: CpuMask) -> int:
        return self._node.policy.cpu_groups.numa_nodes_of(cpus).bit_count()

    def _units(self) -> Iterator[Movable]:
        """What may be moved and may gain by it, outdated containers first."""
        rules, alive = self.starter.rules, self.starter.queue.alive
        found = movables(self._ground, alive, rules.allowed - rules.paused, with_lost=True)
        units = [one for one in found if self._node.wants(alive[one.pod.uid])]
        yield from filter(self._is_outdated, units)
        for one in units:
            if self._spread(one.cpus) > 1 and not self._is_outdated(one):
                yield one

    def _is_outdated(self, unit: Movable) -> bool:
        names = {one.name for one in unit.containers}
        entries = self.starter.kept[unit.pod.uid]
        return any(one.outdated for one in entries if one.container in names)

    def _ways(self, unit: Movable) -> Iterator[tuple[Move, ...]]:
        """The moves that may begin now, and after which the containers are better placed."""
        outdated, left = self._is_outdated(unit), self.starter.rules.left
        if outdated and not self._stays_outdated(unit):
            return  # other CPUs do not help: too few are left to share
        for moves in islice(self._possible(unit, outdated=outdated), MOST_TRIALS_OF_ONE):
            if self._trials >= MOST_TRIALS:
                return
            self._trials += 1
            if not 0 < len(moves) <= left or not leaves_room(self._node, moves):
                continue
            if not outdated or not self._stays_outdated(unit, moves):
                yield moves

    def _possible(self, unit: Movable, *, outdated: bool) -> Iterator[tuple[Move, ...]]:
        """Where the containers can go, the cheapest first.

        Those that lost a part of a core need not keep the other part.
        """
        yield from self._possible_on(self._ground, unit, outdated=outdated)
        if unit.total > unit.cpus.bit_count() and self._node.policy.cpu_taker.whole_cores_only:
            yield from self._possible_on(replace(self._ground, keeps=False), unit, outdated=True)

    def _possible_on(
        self, space: SearchSpace, unit: Movable, *, outdated: bool
    ) -> Iterator[tuple[Move, ...]]:
        pod = unit.pod
        for place in places(space, unit):
            if outdated or space.spanned(place.counts).bit_count() < self._spread(unit.cpus):
                after = after_move(space, unit, place, self._node.cpus.free)
                changed = zip(unit.containers, after or unit.containers, strict=True)
                yield tuple(
                    Move(pod.uid, pod.namespace, pod.pod, old, new)
                    for old, new in changed
                    if old != new
                )

    def _stays_outdated(self, unit: Movable, moves: tuple[Move, ...] = ()) -> bool:
        """Whether the policy would place the pod otherwise, after some moves too."""
        changed = {move.after.name: move for move in moves}
        entries = [
            entry_after(changed[one.container], self._node.policy.topology)
            if one.container in changed
            else one
            for one in self.starter.kept[unit.pod.uid]
        ]
        pod = self.starter.queue.alive[unit.pod.uid]
        return is_outdated(self._node.policy, pod, entries)
