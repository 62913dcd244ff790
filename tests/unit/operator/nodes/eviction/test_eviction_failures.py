"""Evictions that the API server refuses or that fail: reported, and tried again later."""

from itertools import pairwise

import pytest

from numapin_client.errors import ConnectionFailedError, ForbiddenError, TooManyRequestsError
from numapin_operator.nodes.eviction.evictor import PAUSE_SECONDS, RETRY_SECONDS
from support.fakes.worlds.eviction_world import EvictionWorld
from support.real.waiting import running

HOUR = 3600.0


@pytest.fixture
def world() -> EvictionWorld:
    return EvictionWorld()


async def test_an_eviction_that_a_disruption_budget_refuses_is_reported_once_and_tried_less_often(
    world: EvictionWorld,
) -> None:
    world.cluster.budget = 0
    tried_at: list[float] = []
    world.cluster.before_evict = lambda: tried_at.append(world.clock.monotonic())
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a")
        await world.clock.advance(HOUR)
        world.cluster.budget = 1
        await world.clock.advance(HOUR)
    assert not world.cluster.pods
    waits = [round(after - before) for before, after in pairwise(tried_at)]
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]
    (event,) = world.cluster.events
    assert "it is not evicted yet, and is tried again later: Cannot evict pod" in event.note
    assert "The disruption budget web needs 1 healthy pods" in event.note


async def test_what_to_apply_is_said_where_the_right_to_evict_is_missing(
    world: EvictionWorld, caplog: pytest.LogCaptureFixture
) -> None:
    denied = 'User "x" cannot create resource "pods/eviction" in API group "" in the namespace "y"'
    message = f'pods "a" is forbidden: {denied}'
    world.cluster.failures = [ForbiddenError("POST", 403, {"message": message})]
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a")
        await world.clock.advance(RETRY_SECONDS / 2)
    (event,) = world.cluster.events
    assert "manifests/components/eviction" in event.note
    (line,) = (one for one in caplog.records if one.message == "cannot evict a pod")
    assert "manifests/components/eviction" in vars(line)["error"]


async def test_a_blocked_pod_holds_up_no_other(world: EvictionWorld) -> None:
    world.cluster.failures = [ConnectionFailedError("POST", "refused")]
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a", "b")
        await world.clock.advance(PAUSE_SECONDS)
        assert world.left() == ["a"]
        await world.clock.advance(RETRY_SECONDS)
        assert world.left() == []
    assert world.cluster.events == []


async def test_retry_after_is_obeyed(world: EvictionWorld) -> None:
    overloaded = TooManyRequestsError("POST", 429, {"message": "try again later"}, 45)
    world.cluster.failures = [overloaded]
    async with running(world.evictor.run()), running(world.events.run()):
        world.refuse("a")
        await world.clock.advance(44)
        assert world.left() == ["a"]
        await world.clock.advance(1)
        assert world.left() == []
    assert world.cluster.events == []


async def test_an_unexpected_failure_concerns_one_pod_alone(world: EvictionWorld) -> None:
    def fail() -> None:
        world.cluster.before_evict = lambda: None
        raise RuntimeError("a defect")

    world.cluster.before_evict = fail
    async with running(world.evictor.run()):
        world.refuse("a", "b")
        await world.clock.advance(60)
        assert world.left() == ["a"]
        await world.clock.advance(HOUR)
        assert world.left() == []
