"""Which operator may write: the rules of the Lease, in virtual time."""

import asyncio
from threading import Event as ThreadEvent

import pytest

from numapin_client.client import ApiClient
from numapin_client.resources import LEASES, Json, Key
from numapin_operator.installation.leader_election import (
    LeaderElector,
    run_elector,
    take_part,
)
from numapin_operator.installation.leadership import Leadership, NotLeadingError
from numapin_operator.installation.observed_lease import LeaseTiming
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.fakes.manual_clock import ManualClock
from support.real.waiting import eventually, running

LEASE = Key("numapin-operator", "numapin-system")
FAST = LeaseTiming(lease_seconds=1.0, renew_deadline_seconds=0.4, retry_seconds=0.02)


def lease_of(server: FakeApiServer) -> Json:
    [lease] = server.objects.values()
    return lease


def spec_of(server: FakeApiServer) -> Json:
    spec: Json = lease_of(server)["spec"]
    return spec


async def test_the_first_operator_creates_the_lease(server: FakeApiServer, api: ApiClient) -> None:
    first = LeaderElector(api, LEASE, "pod-1")
    assert await first.attempt()
    spec = spec_of(server)
    assert spec["holderIdentity"] == first.identity
    assert spec["holderIdentity"].startswith("pod-1_")
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
    assert spec["acquireTime"] == spec["renewTime"]


async def test_two_operators_of_one_name_are_distinct(api: ApiClient) -> None:
    assert await LeaderElector(api, LEASE, "pod").attempt()
    assert not await LeaderElector(api, LEASE, "pod").attempt()


async def test_a_lease_is_taken_only_after_it_was_not_renewed_for_its_duration(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = ManualClock()
    first, second = (LeaderElector(api, LEASE, "c", leadership=Leadership(clock)) for _ in range(2))
    assert await first.attempt()
    assert not await second.attempt()
    await clock.advance(14.9)
    assert await first.attempt()
    await clock.advance(0.2)
    assert not await second.attempt(), "it was renewed since"
    await clock.advance(14.9)
    assert not await second.attempt()
    await clock.advance(0.2)
    assert await second.attempt()
    assert spec_of(server)["leaseTransitions"] == 1
    assert not await first.attempt()


async def test_the_times_in_a_lease_are_ignored(server: FakeApiServer, api: ApiClient) -> None:
    """The writer's clock may be wrong by years; only the time without a renewal counts."""
    clock = ManualClock()
    spec = {
        "holderIdentity": "other",
        "leaseDurationSeconds": 30,
        "renewTime": "1999-01-01T00:00:00.0Z",
    }
    server.put(
        LEASES, {"metadata": {"name": LEASE.name, "namespace": LEASE.namespace}, "spec": spec}
    )
    elector = LeaderElector(api, LEASE, "c", leadership=Leadership(clock))
    assert not await elector.attempt()
    await clock.advance(29.9)
    assert not await elector.attempt()
    await clock.advance(0.1)
    assert await elector.attempt()


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": ""}])
async def test_a_lease_without_a_holder_is_taken_at_once(
    server: FakeApiServer, api: ApiClient, spec: Json | None
) -> None:
    metadata = {"name": LEASE.name, "namespace": LEASE.namespace}
    server.put(LEASES, {"metadata": metadata} | ({} if spec is None else {"spec": spec}))
    assert await LeaderElector(api, LEASE, "c").attempt()


async def test_renewing_keeps_the_acquire_time(server: FakeApiServer, api: ApiClient) -> None:
    elector = LeaderElector(api, LEASE, "c")
    assert await elector.attempt()
    before = spec_of(server)
    assert await elector.attempt()
    after = spec_of(server)
    assert after["acquireTime"] == before["acquireTime"]
    assert after["renewTime"] > before["renewTime"]


async def test_only_the_fastest_of_many_leads(server: FakeApiServer, api: ApiClient) -> None:
    electors = [LeaderElector(api, LEASE, "c") for _ in range(8)]
    held = await asyncio.gather(*(elector.attempt() for elector in electors))
    assert sum(held) == 1
    assert spec_of(server)["holderIdentity"] == electors[held.index(True)].identity


async def test_a_clean_end_releases_the_lease(server: FakeApiServer, api: ApiClient) -> None:
    async with run_elector(LeaderElector(api, LEASE, "first", FAST)) as first:
        await first.leading.wait()
    assert spec_of(server)["holderIdentity"] == ""
    assert not first.leading.is_set()
    assert await LeaderElector(api, LEASE, "second", leadership=Leadership(ManualClock())).attempt()
    assert spec_of(server)["leaseTransitions"] == 1


async def test_a_clean_end_does_not_release_the_lease_of_another(
    server: FakeApiServer, api: ApiClient
) -> None:
    holder = LeaderElector(api, LEASE, "holder")
    await holder.attempt()
    async with run_elector(LeaderElector(api, LEASE, "waiting", FAST)) as waiting:
        await eventually(lambda: len(server.requests) > 4)
        assert not waiting.leading.is_set()
    assert spec_of(server)["holderIdentity"] == holder.identity


async def test_a_leader_whose_lease_was_taken_stops(server: FakeApiServer, api: ApiClient) -> None:
    """As `kubectl edit lease` can do."""
    async with run_elector(LeaderElector(api, LEASE, "c", FAST)) as elector:
        await elector.leading.wait()
        taken = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
        server.put(LEASES, lease_of(server) | {"spec": taken})
        await eventually(lambda: not elector.leading.is_set())
    assert spec_of(server) == taken


@pytest.mark.parametrize("answer", [Answer(500), Answer(403), Answer(stall=True)])
async def test_a_leader_that_cannot_renew_stops_and_leads_again(
    server: FakeApiServer, api: ApiClient, answer: Answer
) -> None:
    async with run_elector(LeaderElector(api, LEASE, "c", FAST)) as elector:
        await elector.leading.wait()
        server.answers = [answer] * 10_000
        await eventually(lambda: not elector.leading.is_set())
        server.answers = []
        await elector.leading.wait()


async def test_failed_renewals_before_the_deadline_do_not_end_the_lead(
    server: FakeApiServer, api: ApiClient
) -> None:
    lost = False

    async def watch_for_loss(elector: LeaderElector) -> None:
        nonlocal lost
        await elector.leading.wait()
        while not lost:
            lost = not elector.leading.is_set()
            await asyncio.sleep(0)

    timing = LeaseTiming(lease_seconds=3600, renew_deadline_seconds=1800, retry_seconds=0.01)
    elector = LeaderElector(api, LEASE, "c", timing)
    async with run_elector(elector), running(watch_for_loss(elector)):
        await elector.leading.wait()
        server.answers = [Answer(500)] * 5
        await eventually(lambda: not server.answers)
        renewed = spec_of(server)["renewTime"]
        await eventually(lambda: spec_of(server)["renewTime"] > renewed)
    assert not lost


def test_a_timing_that_would_let_two_operators_lead_is_refused() -> None:
    with pytest.raises(ValueError, match="lease must exceed renew deadline"):
        LeaseTiming(lease_seconds=10, renew_deadline_seconds=10)
    with pytest.raises(ValueError, match="lease must exceed renew deadline"):
        LeaseTiming(renew_deadline_seconds=2, retry_seconds=2)


async def test_a_renewal_is_one_request(server: FakeApiServer, api: ApiClient) -> None:
    elector = LeaderElector(api, LEASE, "c")
    assert await elector.attempt()
    before = len(server.requests)
    assert await elector.attempt()
    assert [request.method for request in server.requests[before:]] == ["PUT"]


async def test_a_lease_that_somebody_labelled_is_read_and_renewed(
    server: FakeApiServer, api: ApiClient
) -> None:
    elector = LeaderElector(api, LEASE, "c")
    assert await elector.attempt()
    labelled = lease_of(server)
    labelled["metadata"]["labels"] = {"a": "b"}
    server.put(LEASES, labelled)
    assert await elector.attempt()
    assert lease_of(server)["metadata"]["labels"] == {"a": "b"}


async def test_an_election_that_hangs_stops_all_writing_and_needs_a_restart(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a system call, say: nothing is raised, and no timeout of its loop ends it."""
    clock, hang, hangs = ManualClock(), ThreadEvent(), ThreadEvent()
    leadership, attempt = Leadership(clock), LeaderElector.attempt

    async def hanging(elector: LeaderElector) -> bool:
        if leadership.holds():
            hangs.set()
            hang.wait()  # the loop of this thread stands still
        return await attempt(elector)

    async def no_pause(_: LeaderElector) -> None: ...

    monkeypatch.setattr(LeaderElector, "attempt", hanging)
    monkeypatch.setattr(LeaderElector, "_pause", no_pause)
    try:
        async with running(take_part(leadership, server.login, LEASE, "pod")):
            await clock.until(hangs.is_set)
            assert leadership.election is not None
            clock.stand_still(9.9)
            leadership.check()
            clock.stand_still(0.2)
            with pytest.raises(NotLeadingError):
                leadership.check()
            assert leadership.election.health().fatal() == ""
            clock.stand_still(20)
            assert leadership.election.health().fatal() == "the last pass ended 30 s ago"
            hang.set()
    finally:
        hang.set()


async def test_the_probes_say_why_the_lease_cannot_be_renewed(
    server: FakeApiServer, api: ApiClient
) -> None:
    leadership = Leadership()
    async with run_elector(LeaderElector(api, LEASE, "c", FAST, leadership)) as elector:
        await elector.leading.wait()
        assert leadership.election is not None
        health = leadership.election.health()
        await eventually(lambda: not health.missing())
        server.answers = [Answer(403)] * 10_000
        await eventually(health.missing)
        [said] = health.missing().items()
        server.answers = []
        await eventually(lambda: not health.missing())
    assert said[0] == "Lease numapin-system/numapin-operator"
    assert "403" in said[1]


async def test_a_defect_in_the_election_ends_the_lead_and_is_raised(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process must end then: an operator that takes no part would never lead again."""
    leadership = Leadership()
    attempt = LeaderElector.attempt

    async def failing(elector: LeaderElector) -> bool:
        if leadership.holds():
            raise ZeroDivisionError
        return await attempt(elector)

    monkeypatch.setattr(LeaderElector, "attempt", failing)
    with pytest.raises(ExceptionGroup) as caught:
        await take_part(leadership, server.login, LEASE, "pod", FAST)
    assert caught.value.subgroup(ZeroDivisionError) is not None
    assert not leadership.holds()
    assert spec_of(server)["holderIdentity"] == "", "the other replica need not wait"
