"""A publisher, and the API server with the objects of its node."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from numapin_enforcer.status.publisher import Publisher
from support.fakes.manual_clock import ManualClock
from support.fakes.status_store import OwnStores
from support.fakes.worlds.reports import report


@pytest.fixture
def api() -> OwnStores:
    return OwnStores()


@pytest.fixture
async def publisher(api: OwnStores, clock: ManualClock) -> AsyncIterator[Publisher]:
    """Knows the NodeAssignment, and nothing of a NodeReport yet."""
    made = Publisher(api, "n", clock)
    made.observe(api.assignment.body)
    task = asyncio.create_task(made.run())
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def reporting(api: OwnStores, publisher: Publisher, clock: ManualClock) -> Publisher:
    """Has written a first report."""
    publisher.observe_report(api.report.body)
    publisher.topology.observe(api.topology.body)
    publisher.publish(report())
    await clock.run_tasks()
    assert len(api.report.patches) == 1
    return publisher
