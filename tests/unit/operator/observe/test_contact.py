import math

from numapin_client.errors import ApiError, ConnectionFailedError
from numapin_client.transport.library_session import NO_ANSWER
from numapin_operator.observe.contact import (
    GRACE_SECONDS,
    LONGEST_BACKOFF_SECONDS,
    WatchContact,
    describe_outages,
    longest_backoff_seconds,
)
from numapin_operator.observe.informers import ASSIGNMENT_TIMING, TIMING
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.fakes.operator import held, operator_of_one_node
from support.real.waiting import running


async def test_only_outages_that_last_are_reported() -> None:
    clock = ManualClock()
    contact = WatchContact(["pods"], clock)
    contact.report("pods", "")
    assert describe_outages(contact.outages, clock.monotonic()) == {}
    contact.report("pods", "no answer yet")
    await clock.advance(GRACE_SECONDS - 1)
    contact.report("pods", "403 Forbidden")
    assert describe_outages(contact.outages, clock.monotonic()) == {}
    await clock.advance(1)
    assert describe_outages(contact.outages, clock.monotonic()) == {
        "pods": "out of date for 10 s: 403 Forbidden"
    }
    contact.report("pods", "")
    assert describe_outages(contact.outages, clock.monotonic()) == {}


async def test_a_watch_that_never_connected_is_reported() -> None:
    clock = ManualClock()
    contact = WatchContact(["pods"], clock)
    await clock.advance(GRACE_SECONDS)
    assert list(describe_outages(contact.outages, clock.monotonic())) == ["pods"]


def test_a_request_without_an_answer_does_not_hide_why_the_last_one_failed() -> None:
    contact = WatchContact(["pods"], ManualClock())
    contact.report("pods", "503 Service Unavailable")
    contact.report("pods", NO_ANSWER)
    assert contact.outages["pods"].why == "503 Service Unavailable"
    contact.report("pods", "")
    contact.report("pods", NO_ANSWER)
    assert contact.outages["pods"].why == NO_ANSWER


def test_an_api_server_that_was_away_is_tried_again_soon_and_one_that_refuses_is_not() -> None:
    """A request without an answer burdened nobody; one that the server refuses did."""
    away = ConnectionFailedError("PUT", "connection refused")
    refused = ApiError("PUT", 500, {"reason": "InternalError"})
    assert longest_backoff_seconds(away) == LONGEST_BACKOFF_SECONDS
    assert longest_backoff_seconds(refused) == math.inf
    assert longest_backoff_seconds(None) == math.inf
    assert TIMING.backoff_cap_seconds == ASSIGNMENT_TIMING.backoff_cap_seconds
    assert TIMING.backoff_cap_seconds == LONGEST_BACKOFF_SECONDS


async def test_a_node_that_could_not_be_written_in_an_outage_waits_no_longer_than_that() -> None:
    cluster = FakeCluster()
    operator = await operator_of_one_node(cluster)
    cluster.failures = [ConnectionFailedError("PUT", "connection refused") for _ in range(100)]
    operator.add_pod("a")
    async with running(operator.controller.work(operator.leading)):
        while cluster.failures:
            left = len(cluster.failures)
            await operator.clock.advance(LONGEST_BACKOFF_SECONDS)
            assert len(cluster.failures) < left
        await operator.clock.advance(LONGEST_BACKOFF_SECONDS)
    assert held(cluster) == {"a": "2-3"}
