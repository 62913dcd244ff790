"""Begin the moves by which a pod fits that does not fit now, or have it wait for them."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.assignment.entries import allocation_of, entries_of
from numapin_operator.placement.assignment.moving import begun, finished, leaving_cpus
from numapin_operator.placement.assignment.size_limit import SizeLimit
from numapin_operator.placement.in_use import node_with
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.moves.ground import Ground
from numapin_operator.placement.moves.result import Move, Moves
from numapin_operator.placement.moves.search import MOST_STATES, fewest_moves
from numapin_operator.placement.node import Node
from numapin_operator.placement.queue import InMotion, Queue, Queued
from numapin_operator.placement.requests import PodView

Entries = MutableMapping[str, list[ContainerAssignment]]
"""The entries that stay, by pod."""

LEAST_STATES: Final = 50
"""With fewer combinations left for one plan no other search begins."""


@dataclass(frozen=True, slots=True)
class MoveRules:
    """Which containers of a node may be moved now.

    Attributes:
        allowed: those that may be moved at all, as pod UID and name.
        paused: those of them that were moved lately.
        left: how many may be moved now.
        most: how many may be moved within a minute.
        now: the time (RFC 3339, UTC).
        moves_memory: whether memory may move to another NUMA node.
    """

    allowed: frozenset[tuple[str, str]]
    paused: frozenset[tuple[str, str]] = frozenset()
    left: int = 1
    most: int = 1
    now: str = ""
    moves_memory: bool = False


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
        kept: the entries that stay; those of containers that begin to move are replaced.
        queue: the pods that wait, with the node.
        room: how much the assignment still takes.
        rules: what may be moved.
    """

    kept: Entries
    queue: Queue
    room: SizeLimit
    rules: MoveRules
    _states: int = field(default=MOST_STATES)
    _begun: bool = False

    def make_room(self, pod: PodView) -> Queued | None:
        """Begin moves by which the pod will fit, if they may begin now; None if none would do.

        One pod is made room for at a time. Others for which moves would do wait too.
        """
        found = self._search(pod, self.rules.allowed)
        if found is None or len(found.moves) > self.rules.most:
            return None
        if not self._begun and not self.queue.motion.after:
            at_once = self._allowed_now(pod, found)
            if at_once is not None and self._begin(pod, at_once):
                self._begun, found = True, at_once
        leaving = NO_CPUS
        for move in found.moves:
            leaving |= move.before.cpus & ~move.after.cpus
        movers = {(move.namespace, move.pod) for move in found.moves}
        wanted = CpuSet.from_mask(leaving & found.placed.cpus)
        return Queued(pod, wanted, (), tuple(sorted(movers)))

    def _allowed_now(self, pod: PodView, found: Moves) -> Moves | None:
        """These moves, or others with containers that are not paused, as far as may begin now."""
        paused = {(move.uid, move.after.name) for move in found.moves} & self.rules.paused
        other = self._search(pod, self.rules.allowed - self.rules.paused) if paused else found
        return other if other is not None and len(other.moves) <= self.rules.left else None

    def _search(self, pod: PodView, allowed: frozenset[tuple[str, str]]) -> Moves | None:
        if self._states < LEAST_STATES:
            return None
        ground = Ground(self._base, self._rebuild, self.rules.moves_memory)
        searched = fewest_moves(ground, pod, self.queue.alive, allowed, self._states)
        self._states -= searched.states
        return searched.found

    @property
    def _base(self) -> Node:
        """The node as it is; while something moves already, as it will be."""
        return self.queue.later if self.queue.motion.after else self.queue.node

    def _rebuild(self, allocations: Mapping[str, PodAllocation]) -> Node:
        queue, policy = self.queue, self._base.policy
        if self._base is queue.node:
            policy = replace(policy, claimed=policy.claimed | queue.withheld)
        return node_with(policy, allocations.values(), queue.unbound, queue.held)

    def _begin(self, pod: PodView, found: Moves) -> bool:
        """Give each container its new CPUs besides the old ones; False if there is no room."""
        changed = [(move, *self._entries(pod, move)) for move in found.moves]
        if not all(self.room.replace(before, after) for _, before, after in changed):
            return False
        for move, before, after in changed:
            entries = self.kept[move.uid]
            entries[entries.index(before)] = after
            self.queue.node.cpus.claim(move.arriving)
        return True

    def _entries(self, pod: PodView, move: Move) -> tuple[ContainerAssignment, ContainerAssignment]:
        (before,) = [one for one in self.kept[move.uid] if one.container == move.before.name]
        alone = PodAllocation(move.uid, move.namespace, move.pod, (move.after,))
        (after,) = entries_of((alone,), self.queue.node.policy.topology)
        return before, begun(before, after, self.rules.now, (pod.namespace, pod.name))
