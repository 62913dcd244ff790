"""Two installations in one cluster: at most one operator leads, and the other one says why."""

import asyncio
import logging
import random

import pytest

from numapin_client.client import ApiClient
from numapin_client.resources import LEASES, Json, Key
from numapin_operator.installation.leader_election import LeaderElector
from numapin_operator.installation.leadership import Leadership
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.fakes.manual_clock import ManualClock

OURS = Key("numapin-operator", "numapin-system")
THEIRS = Key("numapin-operator", "elsewhere")


def put(server: FakeApiServer, key: Key, holder: str, lease_seconds: int = 15) -> None:
    """A Lease as another program writes it."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": lease_seconds}
    server.put(LEASES, {"metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec})


def holder(server: FakeApiServer, key: Key) -> str:
    """Who holds a Lease; empty if it is free or does not exist."""
    lease = server.objects.get((LEASES.collection_path(), key.namespace, key.name), {})
    found: Json = lease.get("spec", {})
    return str(found.get("holderIdentity", ""))


def elector(api: ApiClient, key: Key, clock: ManualClock, name: str = "pod") -> LeaderElector:
    """One that takes part when the test calls `attempt`."""
    return LeaderElector(api, key, name, leadership=Leadership(clock))


async def test_the_second_installation_waits_for_the_first_and_says_what_to_do(
    server: FakeApiServer, api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    first, second = elector(api, THEIRS, clock, "first"), elector(api, OURS, clock)
    assert await first.attempt()
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        assert not await second.attempt()
        await clock.advance(9)
        assert await first.attempt()
    assert holder(server, OURS) == "", "its standby need not wait for nothing"
    (line,) = caplog.records
    error = vars(line)["error"]
    assert error.startswith(
        "the operator of another installation leads, in the namespace elsewhere (first_"
    )
    assert "delete the namespace of the one that you do not want" in error

    await first.release()
    assert await second.attempt()


async def test_an_installation_that_ended_without_a_word_is_waited_for_as_a_replica_is(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = ManualClock()
    put(server, THEIRS, "dead", 30)
    second = elector(api, OURS, clock)
    assert not await second.attempt()
    await clock.advance(29.9)
    assert not await second.attempt()
    await clock.advance(0.1)
    assert await second.attempt()


async def test_no_lease_counts_for_longer_than_a_minute_without_a_renewal(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = ManualClock()
    put(server, THEIRS, "tenant", 1_000_000_000)
    second = elector(api, OURS, clock)
    assert not await second.attempt()
    await clock.advance(59.9)
    assert not await second.attempt()
    await clock.advance(0.1)
    assert await second.attempt()


@pytest.mark.parametrize("name", ["other-operator", "numapin-operator-2"])
async def test_leases_of_other_programs_do_not_count(
    server: FakeApiServer, api: ApiClient, name: str
) -> None:
    put(server, Key(name, "elsewhere"), "x")
    assert await elector(api, OURS, ManualClock()).attempt()


async def test_of_two_that_start_at_once_at_most_one_leads(
    server: FakeApiServer, api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen no other Lease, and then both take their own."""
    clock = ManualClock()
    both = [elector(api, key, clock) for key in (OURS, THEIRS)]
    barrier, take = asyncio.Barrier(2), LeaderElector._take_or_renew

    async def take_together(self: LeaderElector) -> bool:
        await barrier.wait()
        held = await take(self)
        await barrier.wait()
        return held

    monkeypatch.setattr(LeaderElector, "_take_or_renew", take_together)
    assert await asyncio.gather(*(one.attempt() for one in both)) == [False, False]
    monkeypatch.undo()
    assert [holder(server, key) for key in (OURS, THEIRS)] == ["", ""]
    assert [await one.attempt() for one in both] == [True, False]


async def test_a_leader_that_was_cut_off_does_not_come_back_beside_another(
    server: FakeApiServer, api: ApiClient
) -> None:
    """Its Lease still names it, and meanwhile another installation has begun to lead."""
    clock = ManualClock()
    first, second = elector(api, OURS, clock), elector(api, THEIRS, clock)
    assert await first.attempt()
    assert not await second.attempt()
    await clock.advance(15)
    assert await second.attempt()
    assert not first.leadership.holds()
    assert not await first.attempt()
    assert holder(server, OURS) == ""


async def test_who_may_not_list_leases_does_not_lead(server: FakeApiServer, api: ApiClient) -> None:
    clock, second = ManualClock(), elector(api, OURS, ManualClock())
    server.answers = [Answer(403)]
    assert not await second.attempt()
    assert holder(server, OURS) == ""
    await clock.advance(1)
    assert await second.attempt()


@pytest.mark.parametrize("seed", range(8))
async def test_of_several_installations_never_more_than_one_leads(
    server: FakeApiServer, api: ApiClient, seed: int
) -> None:
    """Replicas renew, are late, crash and come back at random, and the server fails at times."""
    chosen, clock = random.Random(seed), ManualClock()
    keys = [Key("numapin-operator", f"ns-{number % 3}") for number in range(6)]
    replicas = [elector(api, key, clock) for key in keys]
    led = set()
    for _ in range(150):
        if chosen.random() < 0.1:
            server.answers.append(Answer(500))
        some = chosen.sample(range(6), chosen.randrange(1, 4))
        await asyncio.gather(*(replicas[one].attempt() for one in some))
        leading = [one for one in range(6) if replicas[one].leadership.holds()]
        assert len(leading) <= 1
        led.update(leading)
        await clock.advance(chosen.uniform(0, 8))
        if chosen.random() < 0.1:
            crashed = chosen.randrange(6)
            replicas[crashed] = elector(api, keys[crashed], clock)
    assert len({keys[one].namespace for one in led}) > 1
