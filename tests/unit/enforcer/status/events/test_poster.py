"""Events about the NodeAssignment are posted in the background."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_client.client import ApiClient
from numapin_client.errors import ClientError, UnavailableError
from numapin_client.events import WARNING, Event, Reporter, build_event
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.events import poster as events_module
from numapin_enforcer.status.events.poster import LONGEST_QUEUE, EventPoster
from support.fakes.manual_clock import ManualClock

BODY = {"metadata": {"name": "n", "uid": "u1", "resourceVersion": "5"}}


class Posted:
    """Takes Events; refuses with what stands first in `refusals`."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.refusals: list[ClientError] = []

    async def post(self, _api: ApiClient, regarding: Any, event: Event, _by: object) -> None:
        assert (regarding["kind"], regarding["name"]) == ("NodeAssignment", "n")
        if self.refusals:
            raise self.refusals.pop(0)
        self.notes.append(event.note)


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Posted:
    made = Posted()
    monkeypatch.setattr(events_module, "post_event", made.post)
    return made


@pytest.fixture
async def poster(posted: Posted, clock: ManualClock) -> AsyncIterator[EventPoster]:
    made = EventPoster(None, "n", clock)  # type: ignore[arg-type]
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _event(note: str) -> Event:
    return Event(WARNING, "Test", "Test", note)


async def test_events_are_posted_in_order(
    poster: EventPoster, posted: Posted, clock: ManualClock
) -> None:
    for note in "abc":
        poster.post(_event(note), BODY)
    await clock.run_tasks()
    assert posted.notes == ["a", "b", "c"]


async def test_without_a_node_assignment_there_is_no_event(
    poster: EventPoster, posted: Posted, clock: ManualClock
) -> None:
    poster.post(_event("a"), None)
    await clock.run_tasks()
    assert posted.notes == []


async def test_a_refused_event_is_dropped_and_the_next_one_posted(
    poster: EventPoster, posted: Posted, clock: ManualClock
) -> None:
    posted.refusals = [UnavailableError("POST x", 503, {"message": "down"})]
    poster.post(_event("a"), BODY)
    poster.post(_event("b"), BODY)
    await clock.run_tasks()
    assert posted.notes == ["b"]


async def test_a_flood_of_events_is_cut(
    poster: EventPoster, posted: Posted, clock: ManualClock
) -> None:
    for number in range(LONGEST_QUEUE + 5):
        poster.post(_event(str(number)), BODY)
    await clock.run_tasks()
    assert posted.notes == [str(number) for number in range(LONGEST_QUEUE)]


async def test_a_flood_of_drifts_is_a_few_lines_of_the_log(
    poster: EventPoster, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    mems = MemSet((0,))
    drift = Drift("p", (CpuSet((0,)), mems), (CpuSet((1,)), mems))
    for _ in range(1000):
        poster.drifted(drift, BODY)
    await clock.advance(60)
    poster.drifted(drift, BODY)
    lines = [one for one in caplog.records if one.msg.startswith("reverted")]
    assert [vars(one)["left_out"] for one in lines] == [0, 999]


async def test_a_name_that_is_no_text_can_be_posted() -> None:
    """The name of a cgroup may be any bytes."""
    event = build_event({"name": "n"}, _event("a\udcff\x1b[2J"), Reporter("c", "i"), "now")
    assert event["note"] == r"a\udcff\x1b[2J"


async def test_a_drift_of_a_cgroup_gets_one_event_a_minute(
    poster: EventPoster, posted: Posted, clock: ManualClock
) -> None:
    mems = MemSet((0,))
    drift = Drift("p", (CpuSet((0,)), mems), (CpuSet((1,)), mems))
    poster.drifted(drift, BODY)
    poster.drifted(drift, BODY)
    await clock.advance(60)
    assert posted.notes == [str(drift)]
    poster.drifted(drift, BODY)
    await clock.run_tasks()
    assert posted.notes[1].startswith(f"{drift}; 1 more")
