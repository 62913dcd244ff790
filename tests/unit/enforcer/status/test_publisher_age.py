"""The time of the last pass in the status: it shows a dead enforcer, and costs few writes."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from numapin_api.schema.plain import NodeAssignmentStatus
from numapin_enforcer.status.conditions import judge
from numapin_enforcer.status.publisher import AGE_SECONDS, Publisher
from numapin_enforcer.status.report import Report
from support.fakes.manual_clock import ManualClock
from support.fakes.status_store import StatusStore

RESYNC_SECONDS = 10.0


def report(running: tuple[str, ...] = (), drifts: int = 0) -> Report:
    content = NodeAssignmentStatus(running=running, drift_count=drifts)
    return Report(content, judge(None, None, "fine"))


@pytest.fixture
def api() -> StatusStore:
    return StatusStore()


@pytest.fixture
async def publisher(api: StatusStore, clock: ManualClock) -> AsyncIterator[Publisher]:
    """Has written a first status."""
    made = Publisher(api, "n", clock)
    task = asyncio.create_task(made.run())
    made.observe(api.body)
    made.publish(report())
    made.passed()
    await clock.until(lambda: api.patches)
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def make_passes(publisher: Publisher, clock: ManualClock, count: int) -> None:
    for _ in range(count):
        await clock.advance(RESYNC_SECONDS)
        publisher.passed()
        await clock.run_tasks()


async def test_the_time_of_the_last_pass_is_written_with_any_other_change(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    assert api.body["status"]["lastPassTime"] == "2030-01-01T00:00:00Z"
    await make_passes(publisher, clock, 2)
    publisher.publish(report(("pod-1",)))
    await clock.run_tasks()
    assert api.patches[1:] == [{"running": ["pod-1"], "lastPassTime": "2030-01-01T00:00:20Z"}]


async def test_alone_it_is_written_every_five_minutes(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    del api.patches[:]
    await make_passes(publisher, clock, int(3 * AGE_SECONDS / RESYNC_SECONDS))
    assert [list(one) for one in api.patches] == [["lastPassTime"]] * 3
    assert api.patches[-1] == {"lastPassTime": "2030-01-01T00:15:00Z"}


async def test_it_stays_while_no_pass_is_made(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    await clock.advance(10 * AGE_SECONDS)
    publisher.observe(api.body)
    await clock.run_tasks()
    assert {one.get("lastPassTime") for one in api.patches} == {"2030-01-01T00:00:00Z"}


async def test_an_older_crd_is_not_sent_it_at_every_pass(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    api.prunes = {"lastPassTime"}
    del api.patches[:]
    await make_passes(publisher, clock, int(AGE_SECONDS / RESYNC_SECONDS) + 5)
    assert len(api.patches) == 1
