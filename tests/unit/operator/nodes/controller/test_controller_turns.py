"""When the controller takes the next node, and what it leaves to other tasks."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from numapin_client.errors import TooManyRequestsError
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.nodes.controller import Controller
from numapin_operator.nodes.events.refusal_events import RefusalEvents
from numapin_operator.nodes.eviction.evictor import Evictor
from numapin_operator.nodes.outputs import Outputs
from numapin_operator.observe.cache import ClusterState
from numapin_operator.policies.status_writer import StatusWriter
from numapin_operator.queues.workqueue import WorkQueue
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import is_idle, node_view, policy_view


class Operator:
    """One worker, and a policy that selects every node."""

    def __init__(self) -> None:
        self.cluster, clock = FakeCluster(), ManualClock()
        self.queue = WorkQueue(partial(Backoff, 0.001, 0.01), news_seconds=0.0)
        self.state = ClusterState(self.queue.add)
        self.state.put_policy_view(policy_view())
        self.leading = asyncio.Event()
        self.leading.set()
        events = RefusalEvents(self.cluster, clock)
        outputs = Outputs(
            StatusWriter(self.cluster, self.state, self.leading, clock),
            events,
            Evictor(self.cluster, self.state, events, self.leading, clock),
        )
        self.controller = Controller(self.cluster, self.state, self.queue, outputs)


@pytest.fixture
async def operator() -> AsyncIterator[Operator]:
    made = Operator()
    async with running(made.controller.work(made.leading)):
        yield made


async def test_other_tasks_get_a_turn_after_each_node_without_a_write(operator: Operator) -> None:
    for number in range(20):
        operator.queue.add(f"deleted-{number}")
    turns = 0
    while not is_idle(operator.queue):
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 20


async def test_news_do_not_shorten_what_the_server_asked_for(operator: Operator) -> None:
    asked = TooManyRequestsError("POST node-1", 429, {"reason": "TooManyRequests"}, 30.0)
    operator.cluster.failures = [asked]
    for number in range(100):
        operator.state.put_node(node_view(labels={"news": str(number)}))
        await asyncio.sleep(0)
    assert operator.cluster.failures == []
    assert operator.cluster.assignments == {}
