"""Electors of shards against an API server, in virtual time: leads, hand-over, other divisions."""

import asyncio
from contextlib import suppress

import pytest

from numapin_client.client import ApiClient
from numapin_client.resources import Json, Key
from numapin_operator.installation.leader_election import LeaderElector
from numapin_operator.installation.leadership import Leadership, NotLeadingError
from numapin_operator.installation.undivided import DIVISION
from numapin_operator.shards.candidate import Candidate
from numapin_operator.shards.division import Identity, lease_name
from numapin_operator.shards.elector import Holding, ShardElector
from support.fakes.apiserver import FakeApiServer
from support.fakes.manual_clock import ManualClock

NAMESPACE = "numapin-system"


def elector_of(api: ApiClient, clock: ManualClock, shards: int, name: str) -> ShardElector:
    holdings = [Holding(Leadership(clock)) for _ in range(shards)]
    return ShardElector(api, NAMESPACE, name, holdings)


def led(elector: ShardElector) -> list[int]:
    return [n for n, one in enumerate(elector._holdings) if one.leadership.holds()]


async def rounds(clock: ManualClock, *electors: ShardElector, number: int = 10) -> None:
    for _ in range(number):
        for one in electors:
            await one.round()
        await clock.advance(2.0)


def lease(server: FakeApiServer, shard: int) -> Json:
    return next(body for (_, _, name), body in server.objects.items() if name == lease_name(shard))


async def test_a_single_operator_takes_every_shard(server: FakeApiServer, api: ApiClient) -> None:
    clock = ManualClock()
    one = elector_of(api, clock, 4, "one")
    await rounds(clock, one)
    assert led(one) == [0, 1, 2, 3]
    assert lease(server, 0)["metadata"]["annotations"] == {DIVISION: "4"}
    assert Identity.parse(lease(server, 3)["spec"]["holderIdentity"]) == one.candidate.me


async def test_a_shard_is_handed_over_only_when_nothing_works_on_it(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = ManualClock()
    first, second = (elector_of(api, clock, 2, name) for name in ("first", "second"))
    await rounds(clock, first)
    for one in first._holdings:
        one.idle.clear()
    await rounds(clock, first, second, number=4)
    assert len(led(first)) == 1, "the other one must not be written any more"
    assert led(second) == []
    for one in first._holdings:
        one.idle.set()
    await rounds(clock, first, second, number=3)
    assert sorted(led(first) + led(second)) == [0, 1]
    assert len(led(second)) == 1


async def test_leads_end_without_the_api_server(server: FakeApiServer, api: ApiClient) -> None:
    clock = ManualClock()
    one = elector_of(api, clock, 2, "one")
    await rounds(clock, one, number=4)
    await clock.advance(8.1)
    assert led(one) == []
    with pytest.raises(NotLeadingError):
        one._holdings[1].leadership.check()


async def test_released_shards_are_taken_at_once(server: FakeApiServer, api: ApiClient) -> None:
    clock = ManualClock()
    first, second = (elector_of(api, clock, 2, name) for name in ("first", "second"))
    await rounds(clock, first, second)
    await first.release()
    assert led(first) == []
    await rounds(clock, second, number=5)
    assert led(second) == [0, 1]


async def test_an_undivided_operator_waits_until_no_shard_is_led(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = ManualClock()
    shared = elector_of(api, clock, 2, "shared")
    await rounds(clock, shared)
    assert led(shared) == [0, 1]
    shared.candidate.stop(0)
    await shared._free(0)
    alone = LeaderElector(api, Key(lease_name(0), NAMESPACE), "alone", leadership=Leadership(clock))
    assert await alone.attempt()
    assert led(shared) == [0, 1], "it has not read the Lease since"
    for _ in range(7):
        assert not alone.leadership.holds()
        await clock.advance(2.0)
        await shared.round()
        assert await alone.attempt()
    assert led(shared) == []
    await clock.advance(2.0)
    assert await alone.attempt()
    await clock.advance(1.0)
    assert await alone.attempt()
    assert alone.leadership.holds()
    assert DIVISION not in lease(server, 0)["metadata"]["annotations"]


async def test_an_operator_with_shards_takes_nothing_from_an_undivided_one(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = ManualClock()
    alone = LeaderElector(api, Key(lease_name(0), NAMESPACE), "alone", leadership=Leadership(clock))
    shared = elector_of(api, clock, 2, "shared")
    for _ in range(10):
        assert await alone.attempt()
        await shared.round()
        await clock.advance(2.0)
    assert led(shared) == []
    await alone.release()
    await rounds(clock, shared, number=4)
    assert led(shared) == [0, 1], "its only Lease was that of shard 0: nothing must be waited for"


def test_a_lead_lasts_no_longer_than_what_was_read_of_shard_0() -> None:
    """A pause between reading that Lease and writing another one, in which N has changed."""
    candidate = Candidate(Identity("me", 2), NAMESPACE)
    first = {
        "metadata": {"annotations": {DIVISION: "2"}, "resourceVersion": "1"},
        "spec": {"holderIdentity": "other/2", "renewTime": "now"},
    }
    candidate.read(0, first, 0.0, 0.1)
    candidate.read(1, None, 0.1, 0.2)
    assert candidate.moves(0.2).take == 1
    body = candidate.held(1, 0.3, "now")
    candidate.wrote(1, body, 30.0, 30.1)
    assert candidate.leads_until(1) == 10.0


async def test_its_thread_releases_what_it_holds(server: FakeApiServer, api: ApiClient) -> None:
    """`take_shards`, cancelled when all writing has stopped."""
    from numapin_operator.shards.elector import take_shards

    holdings = [Holding() for _ in range(2)]
    task = asyncio.create_task(take_shards(server.login, NAMESPACE, "me", holdings))
    async with asyncio.timeout(30):
        for one in holdings:
            await one.leadership.leading.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert {lease(server, shard)["spec"]["holderIdentity"] for shard in (0, 1)} == {""}
    assert not any(one.leadership.is_begun for one in holdings)
