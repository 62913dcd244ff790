"""Who may write: the rules of the lease, by a clock that we move."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from numapin_client.client import ApiClient, connect
from numapin_client.resources import LEASES, Json, Key
from numapin_operator.leader_election import Candidate, LeaseTiming, candidacy
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.real.waiting import eventually, running

LEASE = Key("numapin-operator", "numapin-system")
FAST = LeaseTiming(lease_seconds=1.0, renew_deadline_seconds=0.4, retry_seconds=0.02)


class Clock:
    """A clock that stands still until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        yield started


@pytest.fixture
async def api(server: FakeApiServer) -> AsyncIterator[ApiClient]:
    async with connect(server.login) as client:
        yield client


def lease_of(server: FakeApiServer) -> Json:
    [lease] = server.objects.values()
    return lease


def spec_of(server: FakeApiServer) -> Json:
    spec: Json = lease_of(server)["spec"]
    return spec


async def test_the_first_creates_the_lease(server: FakeApiServer, api: ApiClient) -> None:
    first = Candidate(api, LEASE, "pod-1")
    assert await first.attempt()
    spec = spec_of(server)
    assert spec["holderIdentity"] == first.identity
    assert spec["holderIdentity"].startswith("pod-1_")
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
    assert spec["acquireTime"] == spec["renewTime"]


async def test_two_of_one_name_are_still_two(api: ApiClient) -> None:
    assert await Candidate(api, LEASE, "pod").attempt()
    assert not await Candidate(api, LEASE, "pod").attempt()


async def test_a_lease_is_taken_only_after_it_stood_still_for_its_time(
    server: FakeApiServer, api: ApiClient
) -> None:
    clock = Clock()
    first, second = (Candidate(api, LEASE, "c", clock=clock) for _ in range(2))
    assert await first.attempt()
    assert not await second.attempt()
    clock.now += 14.9
    assert await first.attempt()
    clock.now += 0.2
    assert not await second.attempt(), "it was renewed since"
    clock.now += 14.9
    assert not await second.attempt()
    clock.now += 0.2
    assert await second.attempt()
    assert spec_of(server)["leaseTransitions"] == 1
    assert not await first.attempt()


async def test_the_times_written_in_a_lease_are_not_believed(
    server: FakeApiServer, api: ApiClient
) -> None:
    """The writer's clock may be wrong by years; only how long it stands still counts."""
    clock = Clock()
    spec = {
        "holderIdentity": "other",
        "leaseDurationSeconds": 30,
        "renewTime": "1999-01-01T00:00:00.0Z",
    }
    server.put(
        LEASES, {"metadata": {"name": LEASE.name, "namespace": LEASE.namespace}, "spec": spec}
    )
    candidate = Candidate(api, LEASE, "c", clock=clock)
    assert not await candidate.attempt()
    clock.now += 29.9
    assert not await candidate.attempt()
    clock.now += 0.1
    assert await candidate.attempt()


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": ""}])
async def test_a_lease_that_nobody_holds_is_taken_at_once(
    server: FakeApiServer, api: ApiClient, spec: Json | None
) -> None:
    metadata = {"name": LEASE.name, "namespace": LEASE.namespace}
    server.put(LEASES, {"metadata": metadata} | ({} if spec is None else {"spec": spec}))
    assert await Candidate(api, LEASE, "c").attempt()


async def test_renewing_keeps_since_when_it_is_held(server: FakeApiServer, api: ApiClient) -> None:
    candidate = Candidate(api, LEASE, "c")
    assert await candidate.attempt()
    before = spec_of(server)
    assert await candidate.attempt()
    after = spec_of(server)
    assert after["acquireTime"] == before["acquireTime"]
    assert after["renewTime"] > before["renewTime"]


async def test_the_slower_of_two_does_not_lead(server: FakeApiServer, api: ApiClient) -> None:
    candidates = [Candidate(api, LEASE, "c") for _ in range(8)]
    held = await asyncio.gather(*(candidate.attempt() for candidate in candidates))
    assert sum(held) == 1
    assert spec_of(server)["holderIdentity"] == candidates[held.index(True)].identity


async def test_a_clean_end_hands_the_lease_on(server: FakeApiServer, api: ApiClient) -> None:
    async with candidacy(Candidate(api, LEASE, "first", FAST)) as first:
        await first.leading.wait()
    assert spec_of(server)["holderIdentity"] == ""
    assert not first.leading.is_set()
    assert await Candidate(api, LEASE, "second", clock=Clock()).attempt()
    assert spec_of(server)["leaseTransitions"] == 1


async def test_a_clean_end_leaves_the_lease_of_another_alone(
    server: FakeApiServer, api: ApiClient
) -> None:
    holder = Candidate(api, LEASE, "holder")
    await holder.attempt()
    async with candidacy(Candidate(api, LEASE, "waiting", FAST)) as waiting:
        await eventually(lambda: len(server.requests) > 4)
        assert not waiting.leading.is_set()
    assert spec_of(server)["holderIdentity"] == holder.identity


async def test_a_leader_robbed_of_its_lease_stops(server: FakeApiServer, api: ApiClient) -> None:
    """As `kubectl edit lease` does; the robber holds it for long."""
    async with candidacy(Candidate(api, LEASE, "c", FAST)) as candidate:
        await candidate.leading.wait()
        robbed = {"holderIdentity": "robber", "leaseDurationSeconds": 3600}
        server.put(LEASES, lease_of(server) | {"spec": robbed})
        await eventually(lambda: not candidate.leading.is_set())
    assert spec_of(server) == robbed


@pytest.mark.parametrize("answer", [Answer(500), Answer(403), Answer(stall=True)])
async def test_a_leader_that_cannot_renew_stops_and_leads_again(
    server: FakeApiServer, api: ApiClient, answer: Answer
) -> None:
    async with candidacy(Candidate(api, LEASE, "c", FAST)) as candidate:
        await candidate.leading.wait()
        server.answers = [answer] * 10_000
        await eventually(lambda: not candidate.leading.is_set())
        server.answers = []
        await candidate.leading.wait()


async def test_one_failed_renewal_is_not_the_end(server: FakeApiServer, api: ApiClient) -> None:
    lost = False

    async def watch_for_loss(candidate: Candidate) -> None:
        nonlocal lost
        await candidate.leading.wait()
        while not lost:
            lost = not candidate.leading.is_set()
            await asyncio.sleep(0)

    timing = LeaseTiming(lease_seconds=3600, renew_deadline_seconds=1800, retry_seconds=0.01)
    candidate = Candidate(api, LEASE, "c", timing)
    async with candidacy(candidate), running(watch_for_loss(candidate)):
        await candidate.leading.wait()
        server.answers = [Answer(500)] * 5
        await eventually(lambda: not server.answers)
        renewed = spec_of(server)["renewTime"]
        await eventually(lambda: spec_of(server)["renewTime"] > renewed)
    assert not lost


def test_a_timing_that_would_let_two_lead_is_refused() -> None:
    with pytest.raises(ValueError, match="lease must exceed renew deadline"):
        LeaseTiming(lease_seconds=10, renew_deadline_seconds=10)
    with pytest.raises(ValueError, match="lease must exceed renew deadline"):
        LeaseTiming(renew_deadline_seconds=2, retry_seconds=2)
