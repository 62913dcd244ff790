"""How many nodes of one shard may change at the same time, by what the others report."""

from typing import Any

import pytest

from numapin_api.status.policy import PolicyShard
from numapin_operator.policies.sharing.claims import Demand, Sharing, next_turns
from numapin_operator.policies.status import PolicyNodes
from support.values.operator import policy_view

SHARDS, GENERATION, NODES = 3, 2, 8
MINE, OTHER, THIRD = range(SHARDS)


def part(shard: int, turns: int = 0, wanted: int = 0, **more: Any) -> dict[str, Any]:
    """What a shard reports in a policy's status."""
    counts = dict.fromkeys(("inForce", "refused", "outdated", "halted"), 0)
    named = {"shard": shard, "of": SHARDS, "observedGeneration": GENERATION, "governed": NODES}
    return counts | named | {"turns": turns, "wanted": wanted} | more


def sharing(demand: Demand) -> Sharing:
    return Sharing(MINE, SHARDS, lambda _: demand)


def policy(*parts: dict[str, Any], most: str = "4") -> Any:
    spec = {"reserved": {"count": 1}, "rollout": {"maxConcurrent": most}}
    return policy_view("policy", spec, generation=GENERATION, status={"shards": list(parts)})


def limit(*parts: dict[str, Any]) -> int | None:
    return sharing(Demand(waiting=5)).limit(policy(*parts), NODES)


def claimed(demand: Demand, *parts: dict[str, Any]) -> int:
    reported = sharing(demand).reported(policy(*parts), PolicyNodes(NODES), is_elsewhere=False)
    return next(one.turns for one in reported.parts if one.shard == MINE)


def test_what_is_claimed_may_change_and_nothing_before() -> None:
    assert limit(part(OTHER), part(THIRD)) == 0
    assert limit(part(MINE, 3), part(OTHER), part(THIRD)) == 3


def test_turns_of_another_division_count_no_more() -> None:
    old = part(MINE, 3) | {"of": SHARDS + 1}
    assert limit(old, part(OTHER), part(THIRD)) == 0


def test_nodes_that_others_change_beyond_their_share_are_left_out() -> None:
    """Nodes that change may come from another policy, without a claim."""
    assert limit(part(MINE, 3), part(OTHER, 2), part(THIRD, 1)) == 1
    assert limit(part(MINE, 3), part(OTHER, 6), part(THIRD)) == 0


def test_nothing_begins_while_a_node_of_any_shard_is_stalled_by_its_turn() -> None:
    halted = part(OTHER, 1, halted=1)
    assert limit(part(MINE, 2), halted, part(THIRD)) == 0
    earlier = halted | {"observedGeneration": GENERATION - 1}
    assert limit(part(MINE, 2), earlier, part(THIRD)) == 2


def test_a_claim_that_was_lowered_counts_before_its_write_is_answered() -> None:
    """The write may have succeeded, and another shard may have claimed what became free."""
    now = Demand(changing=1)
    mine, stale = sharing(now), policy(part(MINE, 3), part(OTHER), part(THIRD))
    mine.reported(stale, PolicyNodes(NODES), is_elsewhere=False)
    mine.demand = lambda _: Demand(changing=1, waiting=1)
    assert (mine.limit(stale, NODES), mine.is_unsure("policy")) == (1, True)
    mine.reported(stale, PolicyNodes(NODES), is_elsewhere=False)
    assert mine.limit(stale, NODES) == 1
    mine.written("policy")
    assert (mine.limit(stale, NODES), mine.is_unsure("policy")) == (3, False)


WAITING = Demand(waiting=5)


@pytest.mark.parametrize(
    ("demand", "parts", "turns"),
    [
        (WAITING, [part(OTHER), part(THIRD)], 4),
        (WAITING, [part(OTHER)], 0),
        (WAITING, [part(MINE, 2), part(OTHER)], 2),
        (WAITING, [part(MINE, 2), part(OTHER, halted=1), part(THIRD)], 2),
        (Demand(waiting=5, halted=1), [part(OTHER), part(THIRD)], 0),
        (Demand(changing=3, halted=1), [part(MINE, 1), part(OTHER), part(THIRD)], 3),
        (Demand(), [part(MINE, 4), part(OTHER), part(THIRD)], 0),
    ],
    ids=[
        "alone",
        "one shard is unknown",
        "one is unknown: keeps its turns",
        "another is halted: keeps its turns",
        "halted itself",
        "what changes counts, whatever was claimed",
        "nothing to do: all is given back",
    ],
)
def test_more_is_claimed_only_if_all_are_known_and_none_is_halted(
    demand: Demand, parts: list[dict[str, Any]], turns: int
) -> None:
    assert claimed(demand, *parts) == turns


def wire(*parts: dict[str, Any]) -> tuple[PolicyShard, ...]:
    return tuple(PolicyShard.model_validate(one) for one in parts)


@pytest.mark.parametrize(
    ("others", "turns"),
    [
        ([part(OTHER), part(THIRD)], 6),
        ([part(OTHER, 0, 6), part(THIRD)], 3),
        ([part(OTHER, 0, 6), part(THIRD, 0, 6)], 2),
        ([part(OTHER, 0, 1), part(THIRD, 0, 1)], 4),
        ([part(OTHER, 4, 4), part(THIRD)], 2),
        ([part(OTHER, 6, 6), part(THIRD)], 0),
    ],
    ids=[
        "nobody else wants any",
        "halves",
        "thirds",
        "what others do not want is free",
        "no more than is free",
        "nothing while another has all",
    ],
)
def test_shards_share_what_there_is(others: list[dict[str, Any]], turns: int) -> None:
    """Who has more than a fair share gives it back with its own next claim."""
    assert next_turns(Demand(waiting=9), wire(*others), 6) == turns


def test_who_has_more_than_a_fair_share_gives_it_back() -> None:
    others = wire(part(OTHER, 0, 6), part(THIRD))
    assert next_turns(Demand(changing=1, waiting=8), others, 6) == 3
    assert next_turns(Demand(changing=5, waiting=4), others, 6) == 5
