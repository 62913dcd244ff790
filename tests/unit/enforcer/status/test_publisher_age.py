"""The time of the last pass in the status: it comes with other changes, and costs no write."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from numapin_api.schema.plain import NodeAssignmentStatus
from numapin_enforcer.status.conditions import judge
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.report import Report
from support.fakes.manual_clock import ManualClock
from support.fakes.status_store import StatusStore

RESYNC_SECONDS = 10.0


def report(running: tuple[str, ...] = (), drifts: int = 0) -> Report:
    content = NodeAssignmentStatus(running=running, drift_count=drifts)
    return Report(content, judge(None, None, "fine"))


@pytest.fixture
def api() -> StatusStore:
    """An enforcer has reported there before, and there is no NodeReport."""
    store = StatusStore()
    store.body["status"] = {"observedGeneration": 1}
    return store


@pytest.fixture
async def publisher(api: StatusStore, clock: ManualClock) -> AsyncIterator[Publisher]:
    """Has written a first status."""
    made = Publisher(api, "n", clock)
    made.observe_report(None)
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


async def test_alone_it_is_never_written(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    """The Lease shows that the enforcer lives, for a fortieth of what such a write costs."""
    del api.patches[:]
    await make_passes(publisher, clock, 100)
    assert api.patches == []


async def test_it_stays_while_no_pass_is_made(
    api: StatusStore, publisher: Publisher, clock: ManualClock
) -> None:
    await clock.advance(3000)
    publisher.observe(api.body)
    await clock.run_tasks()
    assert {one.get("lastPassTime") for one in api.patches} == {"2030-01-01T00:00:00Z"}
