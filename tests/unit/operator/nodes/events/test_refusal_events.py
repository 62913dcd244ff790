import pytest

from numapin_api.schema.plain_assignment import Refusal
from numapin_client.errors import ConnectionFailedError, TooManyRequestsError
from numapin_operator.nodes.events.refusal_events import (
    ATTEMPTS,
    QUIET_SECONDS,
    WAITING_EVENTS,
    RefusalEvents,
    fresh_refusals,
)
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running


def refusal(pod: str, reason: str = "NotEnoughCPUs", message: str = "wanted 4") -> Refusal:
    return Refusal(
        pod_uid=f"uid-{pod}", namespace="default", pod=pod, reason=reason, message=message
    )


def test_new_pods_and_new_reasons_are_fresh() -> None:
    before = (refusal("a"), refusal("b"))
    after = (
        refusal("a", message="wanted 4, 1 free"),
        refusal("b", "SharedPoolEmpty"),
        refusal("c"),
    )
    assert [one.pod for one in fresh_refusals(before, after)] == ["b", "c"]
    assert fresh_refusals(after, after) == ()


async def test_the_same_refusal_gets_one_event_a_minute() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    events = RefusalEvents(cluster, clock)
    async with running(events.run()):
        for _ in range(3):
            events.offer([refusal("a")], "it waits")
        events.offer([refusal("a", "SharedPoolEmpty")], "it waits")
        await clock.run_tasks()
        assert len(cluster.events) == 2
        await clock.advance(QUIET_SECONDS)
        events.offer([refusal("a")], "it waits")
        await clock.run_tasks()
        assert len(cluster.events) == 3
    assert cluster.events[0].note == "wanted 4; it waits"


async def test_an_event_that_cannot_be_posted_holds_up_no_other() -> None:
    cluster, clock = FakeCluster(), ManualClock()
    cluster.failures = [ConnectionFailedError("POST", "refused")]
    events = RefusalEvents(cluster, clock)
    async with running(events.run()):
        events.offer([refusal("a"), refusal("b")], "it waits")
        await clock.run_tasks()
    assert [event.pod for event in cluster.events] == ["b"]


async def test_a_flood_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    cluster, clock = FakeCluster(), ManualClock()
    events = RefusalEvents(cluster, clock)
    events.offer([refusal(f"pod-{number}") for number in range(WAITING_EVENTS + 50)], "it waits")
    async with running(events.run()):
        for _ in range(WAITING_EVENTS // 10):
            await clock.run_tasks()
    assert len(cluster.events) == WAITING_EVENTS
    (line,) = caplog.records
    assert vars(line)["count"] == 50


async def test_events_are_posted_when_an_overload_is_over() -> None:
    """A tenant cannot read NodeAssignments: only the Event gives the reason."""
    cluster, clock = FakeCluster(), ManualClock()
    cluster.failures = [TooManyRequestsError("POST", 429, {}, 5)] * 4
    events = RefusalEvents(cluster, clock)
    async with running(events.run()):
        events.offer([refusal("a"), refusal("b")], "it waits")
        await clock.advance(4)
        assert cluster.events == []
        await clock.advance(60)
    assert {event.pod for event in cluster.events} == {"a", "b"}


async def test_an_event_that_is_never_taken_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    cluster, clock = FakeCluster(), ManualClock()
    cluster.failures = [TooManyRequestsError("POST", 429, {})] * ATTEMPTS
    events = RefusalEvents(cluster, clock)
    async with running(events.run()):
        events.offer([refusal("a")], "it waits")
        await clock.advance(600)
    assert (cluster.events, cluster.failures) == ([], [])
    assert "cannot post an Event" in caplog.text


async def test_what_a_budget_refuses_is_reported_after_the_refusal() -> None:
    """Both Events have the same reason, and come within a second."""
    cluster, clock = FakeCluster(), ManualClock()
    events = RefusalEvents(cluster, clock)
    async with running(events.run()):
        events.offer([refusal("a")], "it is evicted")
        events.offer([refusal("a")], "it is not evicted yet")
        await clock.run_tasks()
    assert len(cluster.events) == 2
