"""The newest status reaches the API server: on change only, and through refusals."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from numapin_api.conditions import ConditionType, Obstacle, Verdict
from numapin_api.nodeassignment import NodeAssignmentStatus
from numapin_client.errors import (
    ClientError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
)
from numapin_client.resources import Json, Key, Resource
from numapin_enforcer.status.conditions import Report, judge, merge_patch
from numapin_enforcer.status.publisher import Reporter
from support.real.waiting import eventually

NOW = "2030-01-01T00:00:00Z"


class Api:
    """An object that takes merge patches; refuses with what stands first in `refusals`."""

    def __init__(self) -> None:
        self.body: Json = {"metadata": {"name": "n", "uid": "u1", "resourceVersion": "5"}}
        self.patches: list[dict[str, Any]] = []
        self.refusals: list[ClientError] = []
        self.prunes: set[str] = set()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        await self.may_answer.wait()
        assert (resource.plural, key.name, subresource) == ("nodeassignments", "n", "status")
        assert patch["metadata"] == {"uid": "u1"}
        if self.refusals:
            raise self.refusals.pop(0)
        self.patches.append(patch["status"])
        version = str(int(self.body["metadata"]["resourceVersion"]) + 1)
        metadata = self.body["metadata"] | {"resourceVersion": version}
        status = _merged(self.body.get("status", {}), patch["status"])
        status = {key: value for key, value in status.items() if key not in self.prunes}
        self.body = {"metadata": metadata, "status": status}
        return self.body


def _merged(old: Any, patch: Any) -> Any:
    """RFC 7386, as its appendix writes it."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def report(drifts: int = 0, running: tuple[str, ...] = (), *, blind: bool = False) -> Report:
    content = NodeAssignmentStatus(drift_count=drifts, running=running, observed_generation=1)
    return Report(content, judge(None, None, "all is well"), blind)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def reporter(api: Api) -> AsyncIterator[Reporter]:
    made = Reporter(api, "n", now=lambda: NOW)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_status_is_written_once(api: Api, reporter: Reporter) -> None:
    reporter.observe(api.body)
    reporter.tell(report(3))
    await eventually(lambda: api.patches)
    reporter.tell(report(3))
    reporter.observe(api.body)
    await asyncio.sleep(0.01)
    assert len(api.patches) == 1
    assert api.body["status"]["driftCount"] == 3
    assert [one["type"] for one in api.body["status"]["conditions"]] == [
        "Ready",
        "Reconciling",
        "Stalled",
    ]


async def test_only_what_changed_is_sent(api: Api, reporter: Reporter) -> None:
    reporter.observe(api.body)
    reporter.tell(report(3))
    await eventually(lambda: api.patches)
    reporter.tell(report(4))
    await eventually(lambda: len(api.patches) == 2)
    assert api.patches[1] == {"driftCount": 4}


async def test_what_another_wrote_is_written_over(api: Api, reporter: Reporter) -> None:
    reporter.observe(api.body)
    reporter.tell(report(3))
    await eventually(lambda: api.patches)
    spoiled = api.body["status"] | {"driftCount": 99, "running": ["ghost"]}
    metadata = api.body["metadata"] | {"resourceVersion": "99"}
    api.body = {"metadata": metadata, "status": spoiled}
    reporter.observe(api.body)
    await eventually(lambda: len(api.patches) == 2)
    assert api.patches[1] == {"driftCount": 3, "running": []}


async def test_what_an_older_crd_prunes_is_not_sent_for_ever(api: Api, reporter: Reporter) -> None:
    api.prunes = {"driftCount"}
    reporter.observe(api.body)
    reporter.tell(report(3))
    await eventually(lambda: api.patches)
    for _ in range(3):
        reporter.observe(api.body)
        await asyncio.sleep(0.01)
    assert len(api.patches) == 1
    reporter.tell(report(3, ("pod-1",)))
    await eventually(lambda: len(api.patches) == 2)
    assert api.body["status"]["running"] == ["pod-1"]


async def test_what_is_told_while_another_is_under_way_is_written(
    api: Api, reporter: Reporter
) -> None:
    api.may_answer.clear()
    reporter.observe(api.body)
    reporter.tell(report(3))
    await asyncio.sleep(0.01)
    reporter.tell(report(4))
    api.may_answer.set()
    await eventually(lambda: len(api.patches) == 2)
    assert api.body["status"]["driftCount"] == 4


async def test_an_older_sight_of_the_object_changes_nothing(api: Api, reporter: Reporter) -> None:
    before = api.body
    reporter.observe(before)
    reporter.tell(report(3))
    await eventually(lambda: api.patches)
    reporter.observe(before)
    await asyncio.sleep(0.01)
    assert len(api.patches) == 1


async def test_nothing_is_written_before_there_is_an_object(api: Api, reporter: Reporter) -> None:
    reporter.tell(report(3))
    await asyncio.sleep(0.01)
    reporter.observe(api.body)
    await asyncio.sleep(0.01)
    assert api.patches == []
    reporter.tell(report(4))
    await eventually(lambda: api.patches)


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
    api: Api, reporter: Reporter, error: ClientError
) -> None:
    api.refusals = [error]
    reporter.observe(api.body)
    reporter.tell(report(3))
    await eventually(lambda: not api.refusals)
    reporter.tell(report(4))
    await eventually(lambda: api.body.get("status", {}).get("driftCount") == 4)
    await eventually(lambda: not reporter.problem)


async def test_an_object_that_is_gone_is_waited_for(api: Api, reporter: Reporter) -> None:
    api.refusals = [NotFoundError("PATCH x", 404, {})]
    reporter.observe(api.body)
    reporter.tell(report(3))
    await eventually(lambda: not api.refusals)
    assert reporter.problem == ""
    reporter.observe(None)
    reporter.observe(api.body)
    reporter.tell(report(4))
    await eventually(lambda: api.patches)


async def test_a_blind_report_keeps_what_was_said_of_the_kernel(
    api: Api, reporter: Reporter
) -> None:
    reporter.observe(api.body)
    reporter.tell(report(0, ("pod-1",)))
    await eventually(lambda: api.patches)
    reporter.tell(report(1, blind=True))
    await eventually(lambda: len(api.patches) == 2)
    assert api.patches[1] == {"driftCount": 1}
    assert api.body["status"]["running"] == ["pod-1"]


async def test_a_condition_keeps_its_time_while_its_status_stays(
    api: Api, reporter: Reporter
) -> None:
    api.body["status"] = report().wire({}, "2029-01-01T00:00:00Z")
    reporter.observe(api.body)
    stalled = judge(Obstacle("Broken", "it is"), None, "")
    reporter.tell(Report(report().content, stalled))
    await eventually(lambda: api.patches)
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
def test_a_patch_takes_one_status_to_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert _merged(before, merge_patch(before, after)) == after
    assert merge_patch(after, after) == {}
