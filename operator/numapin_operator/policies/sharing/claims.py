"""How many nodes of a shard may change at the same time: a number that all shards agree on.

A shard claims its turns in its part of the policy's status. That is written with the status's
resourceVersion, so a claim is made only by who has seen all others. Does no I/O.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.status.policy import PolicyShard
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies.sharing.parts import part_of, parts_of, summed
from numapin_operator.policies.status import PolicyNodes
from numapin_operator.policies.turns import node_limit


@dataclass(frozen=True, slots=True)
class Demand:
    """What a shard needs turns for.

    Attributes:
        changing: nodes that change now.
        waiting: nodes that wait for their turn.
        halted: nodes that became stalled by their turn.
    """

    changing: int = 0
    waiting: int = 0
    halted: int = 0


NO_DEMAND: Final = Demand()


@dataclass(frozen=True, slots=True)
class Reported:
    """What all shards report: the sum of their nodes, and each part."""

    nodes: PolicyNodes
    parts: tuple[PolicyShard, ...]


@dataclass(slots=True)
class Sharing:
    """One shard's part in what all shards count together, for one term.

    Attributes:
        shard: which shard.
        shards: how many there are.
        demand: what the shard needs turns for, by policy; set by the roll-out.
        call: called with each policy of which nodes may have their turn now; likewise.
    """

    shard: int
    shards: int
    demand: Callable[[str], Demand] = lambda _: NO_DEMAND
    call: Callable[[str], object] = bool
    _lowered: dict[str, int] = field(default_factory=dict)
    """Claims that were lowered by a write whose answer is not known."""

    def limit(self, policy: PolicyView, governed: int) -> int | None:
        """How many of the shard's nodes may change at the same time; None for all of them."""
        parts = parts_of(policy.status, self.shards)
        ceiling = self._ceiling(policy, parts, governed)
        if ceiling is None:
            return None
        mine = parts.pop(self.shard, None)
        if mine is None or self._is_halted(policy, parts):
            return 0
        # Nodes that change may have come from other policies, beyond what was claimed.
        left = max(0, ceiling - sum(one.turns for one in parts.values()))
        return min(mine.turns, left, self._lowered.get(policy.name, mine.turns))

    def ceiling(self, policy: PolicyView, governed: int) -> int | None:
        """How many nodes of all shards may change at the same time."""
        return self._ceiling(policy, parts_of(policy.status, self.shards), governed)

    def reported(self, policy: PolicyView, nodes: PolicyNodes, *, is_elsewhere: bool) -> Reported:
        """All parts, this shard's as it should be written now.

        A claim that becomes lower counts from now on: its write may succeed without an answer.
        """
        demand, parts = self.demand(policy.name), parts_of(policy.status, self.shards)
        mine = parts.pop(self.shard, None)
        before = mine.turns if mine else 0
        turns = self._turns(policy, demand, before, parts, nodes.governed)
        if turns < before:
            self._lowered[policy.name] = min(turns, self._lowered.get(policy.name, turns))
        part = part_of(nodes, self.shard, self.shards, policy.generation)
        parts[self.shard] = part.model_copy(
            update={
                "turns": turns,
                "wanted": demand.changing + demand.waiting,
                "halted": demand.halted,
                "elsewhere": is_elsewhere,
            }
        )
        whole = summed(parts, self.shards, policy.generation)
        return Reported(whole, tuple(parts[number] for number in sorted(parts)))

    def is_unsure(self, policy: str) -> bool:
        """Whether the status may say less than is known of it, so that it must be written again."""
        return policy in self._lowered

    def written(self, policy: str) -> None:
        """The status was written, and is known as it was written."""
        self._lowered.pop(policy, None)

    def _turns(
        self,
        policy: PolicyView,
        demand: Demand,
        before: int,
        others: Mapping[int, PolicyShard],
        governed: int,
    ) -> int:
        """How many turns to claim; more than before only if all others are known and none halts."""
        ceiling = self._ceiling(policy, others, governed)
        if ceiling is None:
            return demand.changing
        is_halted = bool(demand.halted) or self._is_halted(policy, others)
        if is_halted or len(others) < self.shards - 1:
            return max(demand.changing, min(before, demand.changing + demand.waiting))
        return next_turns(demand, tuple(others.values()), ceiling)

    def _ceiling(
        self, policy: PolicyView, parts: Mapping[int, PolicyShard], governed: int
    ) -> int | None:
        """The limit for all shards. While some have not reported, not all nodes are known."""
        others = [one for number, one in parts.items() if number != self.shard]
        total = governed + sum(one.governed for one in others)
        limit = node_limit(policy.spec.rollout.max_concurrent, total)
        if limit is not None or len(others) == self.shards - 1:
            return limit
        return total

    @staticmethod
    def _is_halted(policy: PolicyView, others: Mapping[int, PolicyShard]) -> bool:
        return any(
            one.halted and one.observed_generation == policy.generation for one in others.values()
        )


def next_turns(demand: Demand, others: tuple[PolicyShard, ...], ceiling: int) -> int:
    """How many turns a shard claims: its share of `ceiling`, and what others do not want.

    The sum is at most `ceiling`, unless more nodes than that change already.
    """
    wants = demand.changing + demand.waiting
    contenders = bool(wants) + sum(one.wanted > 0 for one in others)
    fair = max(1, ceiling // max(1, contenders))
    left = ceiling - sum(max(one.turns, min(one.wanted, fair)) for one in others)
    free = max(0, ceiling - sum(one.turns for one in others))
    return max(demand.changing, min(wants, max(fair, left), free))
