"""Who leads which shard: hundreds of random histories, and what a death and a join move."""

from collections import Counter

import pytest

from numapin_operator.installation.undivided import DIVISION
from support.fakes.worlds.election_world import Replica, World

SETTLED_SECONDS = 120.0


def alive(world: World) -> list[Replica]:
    return [one for one in world.replicas if not one.is_dead]


def assert_balanced(world: World, shards: int) -> None:
    holders, replicas = world.holders(), alive(world)
    assert holders.keys() == set(range(shards))
    counts = Counter(holders.values())
    each = [counts[one.candidate.me.name] for one in replicas]
    assert max(each) - min(each) <= 1, counts


def disturb(world: World, shards: int) -> None:
    """Something happens to one operator, or to all."""
    what = world.random.choice(
        ("kill", "join", "pause", "cut off", "heal", "loss", "no loss", "quiet", "quiet")
    )
    some = world.random.choice(alive(world) or [None])
    if what == "join" and len(alive(world)) < 6:
        world.join(shards)
    elif what == "loss":
        world.loss = world.random.choice((0.05, 0.3))
    elif what == "no loss":
        world.loss = 0.0
    elif what == "heal":
        for one in world.replicas:
            one.is_cut_off = False
    elif some is not None and what == "kill":
        some.is_dead = True
    elif some is not None and what == "pause":
        some.paused_until = world.now + world.random.choice((1.0, 9.0, 14.0, 16.0, 60.0))
    elif some is not None and what == "cut off":
        some.is_cut_off = True


def heal(world: World) -> None:
    world.loss = 0.0
    for one in world.replicas:
        one.is_cut_off = False


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_no_node_has_two_leaders_and_all_have_one_in_the_end(start: int) -> None:
    """Deaths, joins, pauses, cuts and lost answers; clocks of other rates, dates that jump."""
    for seed in range(start, start + 100):
        world = World(seed)
        shards = world.random.choice((1, 2, 3, 4, 8))
        for _ in range(world.random.randint(1, 4)):
            world.join(shards)
        for _ in range(12):
            world.run(world.random.choice((0.5, 3.0, 12.0, 17.0, 30.0)))
            disturb(world, shards)
        heal(world)
        if not alive(world):
            world.join(shards)
        world.run(60.0 + SETTLED_SECONDS)
        assert_balanced(world, shards)


@pytest.mark.parametrize("start", range(0, 200, 100))
def test_operators_with_another_number_of_shards_wait_for_each_other(start: int) -> None:
    """A rolling update to another number, back and forth, with all else that goes wrong."""
    for seed in range(start, start + 100):
        world = World(seed)
        numbers = world.random.sample((1, 2, 4, 8), 2)
        for _ in range(3):
            world.join(numbers[0])
        world.run(30.0)
        for _ in range(8):
            disturb(world, world.random.choice(numbers))
            world.run(world.random.choice((1.0, 12.0, 30.0)))
        heal(world)
        for one in alive(world):
            one.is_dead = True
            world.join(numbers[1])
            world.run(world.random.choice((0.1, 5.0, 40.0)))
        if not alive(world):
            world.join(numbers[1])
        world.run(60.0 + SETTLED_SECONDS)
        assert_balanced(world, numbers[1])
        assert world.server.leases[0]["metadata"]["annotations"][DIVISION] == str(numbers[1])


@pytest.mark.parametrize(("shards", "replicas"), [(4, 3), (4, 4), (8, 3), (16, 5), (4, 6)])
def test_a_death_moves_only_the_shards_of_the_dead(shards: int, replicas: int) -> None:
    for seed in range(5):
        world = World(seed)
        for _ in range(replicas):
            world.join(shards)
        world.run(SETTLED_SECONDS)
        before = world.holders()
        dead = world.random.choice(world.replicas)
        dead.is_dead = True
        world.run(SETTLED_SECONDS)
        after = world.holders()
        assert_balanced(world, shards)
        moved = {shard for shard in before if before[shard] != after[shard]}
        assert moved == {shard for shard in before if before[shard] == dead.candidate.me.name}


@pytest.mark.parametrize(("shards", "replicas"), [(4, 1), (4, 2), (4, 3), (8, 3), (16, 4), (4, 4)])
def test_a_join_moves_no_more_than_its_share(shards: int, replicas: int) -> None:
    for seed in range(5):
        world = World(seed)
        for _ in range(replicas):
            world.join(shards)
        world.run(SETTLED_SECONDS)
        before = world.holders()
        assert_balanced(world, shards)
        joined = world.join(shards)
        world.run(SETTLED_SECONDS)
        after = world.holders()
        assert_balanced(world, shards)
        moved = [shard for shard in before if before[shard] != after[shard]]
        assert len(moved) == shards // (replicas + 1)
        assert {after[shard] for shard in moved} <= {joined.candidate.me.name}


def test_a_clean_end_is_taken_over_at_once_and_a_death_after_the_lease() -> None:
    world = World(1)
    first, second = world.join(2), world.join(2)
    world.run(SETTLED_SECONDS)
    assert_balanced(world, 2)
    first.is_dead = True
    world.run(10.0)
    assert len(world.holders()) == 1
    world.run(10.0)
    assert set(world.holders().values()) == {second.candidate.me.name}
