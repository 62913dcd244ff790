"""The newest status reaches the API server: on change only, and through refusals."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from numapin_api.conditions.reasons import ConditionType, Obstacle, Verdict
from numapin_api.schema.plain import NodeAssignmentStatus
from numapin_client.errors import (
    ClientError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from numapin_enforcer.status.conditions import judge
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.publishing.merge_patch import merge_patch
from numapin_enforcer.status.report import Report
from support.fakes.manual_clock import ManualClock
from support.fakes.status_store import StatusStore, merged

NOW = "2030-01-01T00:00:00Z"


def report(drifts: int = 0, running: tuple[str, ...] = (), *, blind: bool = False) -> Report:
    content = NodeAssignmentStatus(drift_count=drifts, running=running, observed_generation=1)
    return Report(content, judge(None, None, "all is well"), blind=blind)


@pytest.fixture
def api() -> StatusStore:
    """An enforcer has reported there before, and there is no NodeReport."""
    store = StatusStore()
    store.body["status"] = {"observedGeneration": 1}
    return store


@pytest.fixture
async def publisher(api: StatusStore, clock: ManualClock) -> AsyncIterator[Publisher]:
    made = Publisher(api, "n", clock)
    made.observe_report(None)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_status_is_written_once(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.until(lambda: api.patches)
    publisher.publish(report(3))
    publisher.observe(api.body)
    await clock.run_tasks()
    assert len(api.patches) == 1
    assert api.body["status"]["driftCount"] == 3
    assert [one["type"] for one in api.body["status"]["conditions"]] == [
        "Ready",
        "Reconciling",
        "Stalled",
    ]


async def test_only_what_changed_is_sent(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.until(lambda: api.patches)
    publisher.publish(report(4))
    await clock.advance(1)
    assert api.patches[1:] == [{"driftCount": 4}]


async def test_an_external_change_of_the_status_is_overwritten(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.until(lambda: api.patches)
    spoiled = api.body["status"] | {"driftCount": 99, "running": ["ghost"]}
    metadata = api.body["metadata"] | {"resourceVersion": "99"}
    api.body = {"metadata": metadata, "status": spoiled}
    publisher.observe(api.body)
    await clock.until(lambda: len(api.patches) == 2)
    assert api.patches[1] == {"driftCount": 3, "running": []}


async def test_what_an_older_crd_prunes_is_not_sent_for_ever(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    api.prunes = {"driftCount"}
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.until(lambda: api.patches)
    for _ in range(3):
        publisher.observe(api.body)
        await clock.run_tasks()
    assert len(api.patches) == 1
    publisher.publish(report(3, ("pod-1",)))
    await clock.until(lambda: len(api.patches) == 2)
    assert api.body["status"]["running"] == ["pod-1"]


async def test_a_status_published_during_a_write_is_written_next(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    api.may_answer.clear()
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.run_tasks()
    publisher.publish(report(4))
    api.may_answer.set()
    await clock.advance(1)
    assert api.body["status"]["driftCount"] == 4


async def test_an_older_version_of_the_object_is_ignored(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    before = api.body
    publisher.observe(before)
    publisher.publish(report(3))
    await clock.until(lambda: api.patches)
    publisher.observe(before)
    await clock.run_tasks()
    assert len(api.patches) == 1


async def test_nothing_is_written_before_there_is_an_object(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.publish(report(3))
    await clock.run_tasks()
    publisher.observe(api.body)
    await clock.run_tasks()
    assert api.patches == []
    publisher.publish(report(4))
    await clock.until(lambda: api.patches)


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("PATCH x", 409, {"message": "stale"}),
        TooManyRequestsError("PATCH x", 429, {"message": "busy"}, 0.01),
        UnavailableError("PATCH x", 503, {"message": "down"}),
    ],
    ids=["conflict", "too many requests", "unavailable"],
)
async def test_a_refused_status_is_tried_again_and_the_newest_wins(
    api: StatusStore, publisher: Publisher, clock: ManualClock, error: ClientError
) -> None:
    api.refusals = [error]
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.until(lambda: not api.refusals)
    publisher.publish(report(4))
    await clock.run_tasks()
    assert (api.patches, publisher.problem) == ([], str(error))
    await clock.advance(1)
    assert api.body["status"]["driftCount"] == 4
    assert publisher.problem == ""


async def test_a_deleted_object_is_awaited(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    api.refusals = [NotFoundError("PATCH x", 404, {})]
    publisher.observe(api.body)
    publisher.publish(report(3))
    await clock.until(lambda: not api.refusals)
    assert publisher.problem == ""
    publisher.observe(None)
    publisher.observe(api.body)
    publisher.publish(report(4))
    await clock.until(lambda: api.patches)


async def test_a_blind_report_leaves_the_values_read_from_the_kernel(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(api.body)
    publisher.publish(report(0, ("pod-1",)))
    await clock.until(lambda: api.patches)
    publisher.publish(report(1, blind=True))
    await clock.advance(1)
    assert api.patches[1:] == [{"driftCount": 1}]
    assert api.body["status"]["running"] == ["pod-1"]


async def test_a_condition_keeps_its_time_while_its_status_stays(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    api.body["status"] = report().wire({}, "2029-01-01T00:00:00Z")
    publisher.observe(api.body)
    stalled = judge(Obstacle("Broken", "it is"), None, "")
    publisher.publish(Report(report().content, stalled))
    await clock.until(lambda: api.patches)
    times = {one["type"]: one["lastTransitionTime"] for one in api.body["status"]["conditions"]}
    assert times == {"Ready": NOW, "Reconciling": "2029-01-01T00:00:00Z", "Stalled": NOW}


@pytest.mark.parametrize(
    ("stalled", "working", "ready"),
    [
        (None, None, ("True", "Enforced", "fine")),
        (None, Obstacle("Applying", "soon"), ("False", "Applying", "soon")),
        (Obstacle("Broken", "mend"), Obstacle("Applying", "soon"), ("False", "Broken", "mend")),
    ],
    ids=["fine", "under way", "stalled"],
)
def test_the_three_conditions(
    stalled: Obstacle | None, working: Obstacle | None, ready: tuple[str, str, str]
) -> None:
    verdicts = {one.type: one for one in judge(stalled, working, "fine")}
    one = verdicts[ConditionType.READY]
    assert ("True" if one.holds else "False", str(one.reason), one.message) == ready
    assert verdicts[ConditionType.STALLED].holds == bool(stalled)
    assert verdicts[ConditionType.RECONCILING].holds == bool(working)
    assert isinstance(one, Verdict)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"a": 1}),
        ({"a": 1}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": [1]}),
        ({"a": [1, 2]}, {"a": [2]}),
        ({"a": {"b": {"c": 1}}, "d": 1}, {"a": {"b": {"c": 2}}, "d": 1}),
    ],
)
def test_a_patch_turns_one_status_into_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert merged(before, merge_patch(before, after)) == after
    assert merge_patch(after, after) == {}


async def test_counters_wait_a_second(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    publisher.observe(api.body)
    for count in range(300):
        publisher.publish(report(count, ("pod-1",) if count > 149 else ()))
        await clock.advance(0.01)
        assert bool(api.body["status"].get("running")) == (count > 149)  # not delayed
    assert 4 <= len(api.patches) <= 5
