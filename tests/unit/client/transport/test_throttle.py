"""What all requests of one client wait for: a rate limit, and an overload of the server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from numapin_client.cache.watch import WatchTiming, watch
from numapin_client.client import ApiClient, Source, connect
from numapin_client.errors import MAX_RETRY_AFTER_SECONDS, ApiError
from numapin_client.resources import NODES, PODS, Key
from numapin_client.transport.throttle import SPREAD_SECONDS, Throttle
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer, status
from support.fakes.cluster import BLOCKED_BY_BUDGET
from support.fakes.manual_clock import ManualClock

NODE = Key("node-1")


@asynccontextmanager
async def throttled(
    server: FakeApiServer, clock: ManualClock, per_second: float = 0.0, burst: int = 1
) -> AsyncIterator[ApiClient]:
    server.put(NODES, {"metadata": {"name": "node-1"}})
    throttle = Throttle(per_second, burst, clock=clock)
    async with connect(server.login, throttle=throttle) as client:
        yield client


async def waits(clock: ManualClock) -> list[float]:
    """How long what is under way still sleeps."""
    await clock.until(clock.pending_seconds)
    return list(clock.pending_seconds())


@pytest.mark.parametrize("code", [429, 503])
async def test_all_requests_wait_until_an_overload_is_over(
    server: FakeApiServer, code: int
) -> None:
    clock = ManualClock()
    async with throttled(server, clock) as client:
        server.answers = [Answer(code, {"Retry-After": "30"})]
        with pytest.raises(ApiError):
            await client.get(NODES, NODE)
        asked = len(server.requests)
        reading = asyncio.create_task(client.get(NODES, NODE))
        deleting = asyncio.create_task(client.delete(NODES, NODE))
        assert min(await waits(clock)) >= 30
        await clock.advance(29)
        assert len(server.requests) == asked
        await clock.advance(1 + SPREAD_SECONDS)
        await asyncio.wait((reading, deleting))
    assert len(server.requests) == asked + 2


async def test_nobody_can_stop_a_client_for_a_day(server: FakeApiServer) -> None:
    clock = ManualClock()
    async with throttled(server, clock) as client:
        server.answers = [Answer(429, {"Retry-After": "86400"})]
        with pytest.raises(ApiError):
            await client.get(NODES, NODE)
        reading = asyncio.create_task(client.get(NODES, NODE))
        assert max(await waits(clock)) <= MAX_RETRY_AFTER_SECONDS + SPREAD_SECONDS
        await clock.advance(MAX_RETRY_AFTER_SECONDS + SPREAD_SECONDS)
        await reading


async def test_an_eviction_that_a_budget_refuses_is_no_overload(server: FakeApiServer) -> None:
    """A tenant chooses the budget, so it must not delay requests about others."""
    clock = ManualClock()
    async with throttled(server, clock) as client:
        refused = status(429, "TooManyRequests", "blocked") | BLOCKED_BY_BUDGET
        server.answers = [Answer(429, {"Retry-After": "10"}, json.dumps(refused).encode())]
        with pytest.raises(ApiError):
            await client.create(PODS, {"metadata": {"name": "a", "namespace": "b"}}, "eviction")
        await client.get(NODES, NODE)


async def test_the_rate_is_limited(server: FakeApiServer) -> None:
    clock = ManualClock()
    async with throttled(server, clock, per_second=2, burst=3) as client:
        for _ in range(3):
            await client.get(NODES, NODE)
        reads = [asyncio.create_task(client.get(NODES, NODE)) for _ in range(3)]
        await clock.until(lambda: len(clock.pending_seconds()) == 3)
        assert clock.pending_seconds() == (0.5, 1.0, 1.5)
        await clock.advance(1.5)
        await asyncio.wait(reads)


async def test_watches_are_not_counted(server: FakeApiServer) -> None:
    clock = ManualClock()
    async with throttled(server, clock, per_second=1, burst=1) as client:
        await client.get(NODES, NODE)
        for _ in range(3):
            events = watch(client.connection, Source(NODES), "0", WatchTiming(10, 20))
            await anext(events)
            await events.aclose()


async def test_a_renewal_of_a_lease_does_not_wait(server: FakeApiServer) -> None:
    clock = ManualClock()
    throttle = Throttle(heeds_overload=False, clock=clock)
    server.put(NODES, {"metadata": {"name": "node-1"}})
    async with connect(server.login, throttle=throttle) as client:
        server.answers = [Answer(429, {"Retry-After": "30"})]
        with pytest.raises(ApiError):
            await client.get(NODES, NODE)
        await client.get(NODES, NODE)
