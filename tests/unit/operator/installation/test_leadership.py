"""Who does not lead does not write: by the clock, in any thread, and for a term's whole work."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager

import pytest

from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_client.client import connect
from numapin_client.resources import Key
from numapin_operator.api_server import ApiCluster
from numapin_operator.cluster import PodEvent
from numapin_operator.installation.leader_election import take_part
from numapin_operator.installation.leadership import Leadership, NotLeadingError
from numapin_operator.installation.observed_lease import LeaseTiming
from support.fakes.apiserver import FakeApiServer
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import REPORTER, node_view

LEASE = Key("numapin-operator", "numapin-system")
FAST = LeaseTiming(lease_seconds=30.0, renew_deadline_seconds=20.0, retry_seconds=0.01)


async def test_the_lead_ends_by_the_clock() -> None:
    """Also where the event loop has stood still and knows nothing of it yet."""
    clock = ManualClock()
    leadership = Leadership(clock)
    assert not leadership.holds()
    leadership.extend(clock.monotonic() + 10)
    await clock.advance(9.9)
    leadership.check()
    await clock.advance(0.2)
    assert leadership.leading.is_set()
    with pytest.raises(NotLeadingError):
        leadership.check()


async def test_the_work_of_a_term_is_cancelled_with_it_and_begins_with_the_next() -> None:
    leadership, calls = Leadership(), []

    async def work() -> None:
        calls.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            calls.append("ended")

    clock = ManualClock()
    async with running(leadership.run_terms(work)):
        await clock.run_tasks()
        assert calls == []
        leadership.extend(math.inf)
        await clock.run_tasks()
        assert calls == ["begun"]
        leadership.end()
        await clock.run_tasks()
        assert calls == ["begun", "ended"]
        leadership.extend(math.inf)
        leadership.end()
        leadership.extend(math.inf)
        await clock.run_tasks()
        assert calls[-1] == "begun"


async def test_a_lead_lost_and_taken_again_at_once_is_another_term() -> None:
    """Between both another operator may have led."""
    leadership, terms = Leadership(), []

    async def work() -> None:
        terms.append("term")
        await asyncio.Event().wait()

    clock = ManualClock()
    leadership.extend(math.inf)
    async with running(leadership.run_terms(work)):
        await clock.run_tasks()
        leadership.end()
        leadership.extend(math.inf)
        await clock.run_tasks()
    assert terms == ["term", "term"]


async def test_a_term_ends_by_the_clock_if_the_election_hangs() -> None:
    """Nobody calls `end` then; what is in flight is cancelled before another operator may lead."""
    clock, work = ManualClock(), asyncio.Event()
    leadership, terms = Leadership(clock), []

    async def term() -> None:
        terms.append("begun")
        try:
            await work.wait()
        finally:
            terms.append("ended")

    async with running(leadership.run_terms(term)):
        leadership.extend(clock.monotonic() + 10)
        await clock.advance(8)
        leadership.extend(clock.monotonic() + 10)
        await clock.advance(9.9)
        assert terms == ["begun"]
        await clock.advance(0.2)
        assert terms == ["begun", "ended"]
        assert not leadership.leading.is_set()
        leadership.extend(clock.monotonic() + 10)
        await clock.run_tasks()
        assert terms == ["begun", "ended", "begun"], "it no longer hangs"


async def test_nothing_is_written_without_the_lead(server: FakeApiServer) -> None:
    """Reads pass; every kind of write is stopped before it is sent."""
    leadership = Leadership(ManualClock())
    async with connect(server.login) as api:
        api.connection.before_write = leadership.check
        cluster = ApiCluster(api, REPORTER)
        leadership.extend(math.inf)
        made = await cluster.create_assignment(node_view(), NodeAssignmentSpec())
        leadership.end()
        before = len(server.requests)
        writes = [
            cluster.create_assignment(node_view("other"), NodeAssignmentSpec()),
            cluster.replace_spec(made, node_view(), NodeAssignmentSpec(mode="None")),
            cluster.delete_assignment(made),
            cluster.post_event(PodEvent("default", "a", "uid", "NotEnoughCPUs", "4 wanted")),
            cluster.evict("default", "a", "uid"),
        ]
        for write in writes:
            with pytest.raises(NotLeadingError):
                await write
        assert len(server.requests) == before
        assert await cluster.read_assignment("node-1") == made


@asynccontextmanager
async def server_in_thread() -> AsyncIterator[FakeApiServer]:
    """A server that answers also while the test's own loop stands still."""
    ready: Future[FakeApiServer] = Future()
    stop: Future[None] = Future()

    async def serve() -> None:
        async with FakeApiServer() as started:
            ready.set_result(started)
            await asyncio.wrap_future(stop)

    thread = asyncio.create_task(asyncio.to_thread(asyncio.run, serve()))
    try:
        yield await asyncio.wrap_future(ready)
    finally:
        stop.set_result(None)
        await thread


def renewed(server: FakeApiServer) -> str:
    [lease] = server.objects.values()
    return str(lease["spec"]["renewTime"])


async def test_renewals_do_not_wait_for_a_blocked_loop() -> None:
    leadership = Leadership()
    async with server_in_thread() as server:
        async with running(take_part(leadership, server.login, LEASE, "c", FAST)):
            await leadership.leading.wait()
            before = renewed(server)
            for _ in range(10_000):
                if renewed(server) != before:
                    break
                time.sleep(0.001)  # noqa: ASYNC251 - a loop that stands still
            assert renewed(server) != before
            assert leadership.holds()
        assert not leadership.holds()
        [lease] = server.objects.values()
        assert lease["spec"]["holderIdentity"] == "", "it was released"
