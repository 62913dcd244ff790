"""Which pods are evicted, and how fast."""

from itertools import pairwise
from typing import Any

import pytest

from numapin_client.resources import Key
from numapin_operator.nodes.eviction.evictor import PAUSE_SECONDS
from numapin_operator.nodes.eviction.history import FIRST_DELAY_SECONDS
from support.fakes.worlds.eviction_world import EvictionWorld
from support.real.waiting import running

HOUR = 3600.0


@pytest.fixture
def world() -> EvictionWorld:
    return EvictionWorld()


async def test_pods_are_evicted_once(world: EvictionWorld) -> None:
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.run_tasks()
        assert world.left() == ["b"]
        world.evictor.offer("node-1")
        await world.clock.advance(2 * PAUSE_SECONDS)
        assert not world.cluster.pods


async def test_pods_are_evicted_slowly(world: EvictionWorld) -> None:
    async with running(world.evictor.run()):
        world.refuse(*"abc")
        await world.clock.run_tasks()
        assert len(world.left()) == 2
        await world.clock.advance(PAUSE_SECONDS / 2)
        assert len(world.left()) == 2
        await world.clock.advance(PAUSE_SECONDS / 2)
        assert len(world.left()) == 1


async def test_pods_that_replace_evicted_ones_are_evicted_less_and_less_often(
    world: EvictionWorld,
) -> None:
    """A controller puts each new pod on the same node, where it is refused again."""
    evicted_at: list[float] = []
    world.cluster.before_evict = lambda: evicted_at.append(world.clock.monotonic())
    async with running(world.evictor.run()):
        for number in range(8):
            name = f"pod-{number}"
            world.state.drop_pod(Key(f"pod-{number - 1}", "default"), "node-1")
            world.refuse(name, owner=("ReplicaSet", "uid-of-the-set"))
            for _ in range(601):
                if world.left():
                    await world.clock.advance(1)
    waits = [after - before for before, after in pairwise(evicted_at)]
    assert waits == [10, 20, 40, 80, 160, 320, 600]


async def test_a_quiet_cause_is_forgotten(world: EvictionWorld) -> None:
    async with running(world.evictor.run()):
        for round_ in range(2):
            world.refuse(f"a-{round_}", owner=("ReplicaSet", "set"))
            await world.clock.run_tasks()
            assert world.left() == []
            world.state.drop_pod(Key(f"a-{round_}", "default"), "node-1")
            await world.clock.advance(HOUR)
            world.refuse("another", owner=("ReplicaSet", "another"))
            await world.clock.advance(FIRST_DELAY_SECONDS)
            world.state.drop_pod(Key("another", "default"), "node-1")


async def test_the_pods_of_one_controller_that_were_refused_together_go_together(
    world: EvictionWorld,
) -> None:
    async with running(world.evictor.run()):
        world.refuse(*"abc", owner=("ReplicaSet", "set"))
        await world.clock.advance(2 * PAUSE_SECONDS)
        assert world.left() == []


async def test_namespaces_take_turns(world: EvictionWorld) -> None:
    """Many refused pods of one tenant delay those of another by one pause."""
    world.refuse(*"abcdefgh", namespace="greedy")
    async with running(world.evictor.run()):
        await world.clock.run_tasks()
        world.refuse("z", namespace="modest")
        await world.clock.advance(PAUSE_SECONDS)
    assert "z" not in world.left()
    assert len(world.left()) == 7


@pytest.mark.parametrize(
    "others",
    [
        {"owner": ("DaemonSet", "uid-of-the-set")},
        {"owner": ("Node", "uid-node-1")},
        {"priority": 2_000_000_000},
        {"priority": 2_000_001_000},
    ],
    ids=str,
)
async def test_protected_pods_are_never_evicted(world: EvictionWorld, others: Any) -> None:
    async with running(world.evictor.run()):
        world.refuse("a", **others)
        await world.clock.advance(HOUR)
    assert world.left() == ["a"]
