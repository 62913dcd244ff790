"""Events are taken in one after the other, and leave turns to other tasks."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from numapin_daemon.slices import Slices
from numapin_operator.observe.policy_source import inbox
from numapin_operator.observe.policy_source.inbox import Inbox
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running

BODIES: list[dict[str, Any]] = [{"metadata": {"name": f"node-{number}"}} for number in range(20)]


class Taken:
    def __init__(self) -> None:
        self.bodies: list[Mapping[str, Any]] = []

    def put(self, body: Mapping[str, Any]) -> None:
        if body is BODIES[3]:
            raise ValueError("no such object")
        self.bodies.append(body)


async def test_events_are_taken_in_in_order_and_one_bad_event_concerns_itself_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, taken = ManualClock(), Taken()
    events = Inbox(clock)
    async with running(events.run()):
        for body in BODIES:
            events.put(taken.put, body)
        await clock.run_tasks()
    assert taken.bodies == BODIES[:3] + BODIES[4:]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_other_tasks_get_turns_during_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "Slices", partial(Slices, slice_seconds=0.0))
    clock, taken = ManualClock(), Taken()
    events = Inbox(clock)
    seen: set[int] = set()

    def all_taken() -> bool:
        seen.add(len(taken.bodies))
        return len(taken.bodies) == len(BODIES) - 1

    async with running(events.run()):
        for body in BODIES:
            events.put(taken.put, body)
        await clock.until(all_taken)
    assert len(seen) >= len(BODIES) - 1
