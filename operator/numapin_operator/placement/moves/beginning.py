"""Which containers may be moved now, and the first step of their moves."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from numapin_api.schema.plain_assignment import ContainerAssignment
from numapin_api.topology import Topology
from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.assignment.entries import entries_of
from numapin_operator.placement.assignment.moving import begun
from numapin_operator.placement.assignment.size_limit import SizeLimit
from numapin_operator.placement.machine.in_use import node_with
from numapin_operator.placement.moves.result import Move
from numapin_operator.placement.moves.search_space import SearchSpace
from numapin_operator.placement.new_pods.queue import Queue
from numapin_operator.placement.requests import PodView

Entries = MutableMapping[str, list[ContainerAssignment]]
"""The entries that stay, by pod."""


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


@dataclass
class Starter:
    """Begins the moves of one plan.

    Attributes:
        kept: the entries that stay; those of containers that begin to move are replaced.
        queue: the pods that wait, with the node, which loses the new CPUs.
        room: how much the assignment still takes.
        rules: what may be moved.
        begun: whether a move has begun.
    """

    kept: Entries
    queue: Queue
    room: SizeLimit
    rules: MoveRules
    begun: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Leave out containers without an entry that stays, such as one that lost all its CPUs."""
        known = {(uid, one.container) for uid, entries in self.kept.items() for one in entries}
        self.rules = replace(self.rules, allowed=self.rules.allowed & known)

    @property
    def may_begin(self) -> bool:
        """Whether another move may begin: the minute has some, and no pod waits for others."""
        return bool(self.rules.left and not self.begun and not self.queue.motion.after)

    @property
    def space(self) -> SearchSpace:
        """The node as it is; while something moves already, as it will be."""
        queue = self.queue
        base = queue.later if queue.motion.after else queue.node
        policy = base.policy
        if base is queue.node:
            policy = replace(policy, claimed=policy.claimed | queue.withheld)
        return SearchSpace(
            base,
            lambda given: node_with(policy, given.values(), queue.unbound, queue.held),
            self.rules.moves_memory,
            most_moves=self.rules.most,
        )

    def begin(self, moves: Sequence[Move], demand: PodView | None = None) -> bool:
        """Give each container its new CPUs besides the old ones.

        Args:
            moves: what moves.
            demand: the pod for which they move; None if they move for their own good.

        Returns:
            False if the assignment has no room for it, and nothing has changed.
        """
        names = (demand.namespace, demand.name) if demand else None
        changed = []
        for move in moves:
            (before,) = [one for one in self.kept[move.uid] if one.container == move.before.name]
            after = entry_after(move, self.queue.node.policy.topology)
            changed.append((move, before, begun(before, after, self.rules.now, names)))
        if not all(self.room.replace(before, after) for _, before, after in changed):
            return False
        for move, before, after in changed:
            entries = self.kept[move.uid]
            entries[entries.index(before)] = after
            self.queue.node.cpus.claim(move.arriving)
        self.begun = True
        return True


def entry_after(move: Move, topology: Topology) -> ContainerAssignment:
    """The entry of a container once it has moved, as if it had never had other CPUs."""
    alone = PodAllocation(move.uid, move.namespace, move.pod, (move.after._replace(grants=()),))
    (after,) = entries_of((alone,), topology)
    return after
