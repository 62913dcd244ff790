"""When a policy's status is written, and how often."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from numapin_api.policystatus import CpuPolicyStatus
from numapin_client.errors import ConnectionFailedError
from numapin_daemon.slices import Slices
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies import status_writer
from numapin_operator.policies.status import NodeOutcome, Phase, policy_status
from numapin_operator.policies.status_writer import (
    FIRST_PLAN_SECONDS,
    GATHER_SECONDS,
    RETRY_SECONDS,
    StatusWriter,
)
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import node_view


class Statuses:
    """A status writer for one policy that governs the nodes `one` and `two`."""

    def __init__(self) -> None:
        self.cluster, self.clock, self.leading = FakeCluster(), ManualClock(), asyncio.Event()
        self.state = ClusterState(lambda _, urgent=False: None)
        self.writer = StatusWriter(self.cluster, self.state, self.leading, self.clock)
        for name in ("one", "two"):
            self.state.put_node(node_view(name))
        self.state.put_policy(self.cluster.put_policy("policy", {}))
        self.leading.set()

    def in_force(self, node: str) -> None:
        self.writer.set_outcome(node, NodeOutcome(node, "policy", 1, Phase.IN_FORCE))

    def written(self) -> int | None:
        """On how many nodes the written status says that the policy is in force."""
        status = self.cluster.policies["policy"]["status"]
        return status["nodesInForce"] if status else None


@pytest.fixture
async def statuses() -> AsyncIterator[Statuses]:
    made = Statuses()
    async with running(made.writer.run()):
        yield made


async def test_outcomes_that_come_together_are_one_write(statuses: Statuses) -> None:
    statuses.in_force("one")
    await statuses.clock.run_tasks()
    statuses.in_force("two")
    await statuses.clock.advance(2.5 * GATHER_SECONDS)
    assert (statuses.written(), statuses.cluster.writes) == (2, 1)
    assert statuses.clock.pending_seconds() == (), "nothing is left to gather"


async def test_nothing_is_written_unless_leading() -> None:
    statuses = Statuses()
    statuses.leading.clear()
    statuses.in_force("one")
    statuses.in_force("two")
    async with running(statuses.writer.run()):
        await statuses.clock.advance(60)
        assert statuses.written() is None
        statuses.leading.set()
        await statuses.clock.advance(3 * GATHER_SECONDS)
        assert statuses.written() == 2


async def test_a_restart_does_not_look_like_a_change(statuses: Statuses) -> None:
    """A status is not written before every node was planned, or a minute has passed."""
    statuses.in_force("one")
    await statuses.clock.advance(FIRST_PLAN_SECONDS - 1)
    assert statuses.written() is None
    await statuses.clock.advance(2)
    assert statuses.written() == 1


async def test_a_failed_write_is_retried(statuses: Statuses) -> None:
    statuses.cluster.failures = [ConnectionFailedError("PUT", "refused")]
    statuses.in_force("one")
    statuses.in_force("two")
    await statuses.clock.advance(3 * GATHER_SECONDS)
    assert (statuses.cluster.failures, statuses.written()) == ([], None)
    await statuses.clock.advance(RETRY_SECONDS + 2 * GATHER_SECONDS)
    assert statuses.written() == 2


async def test_a_defect_concerns_its_policy_alone(
    statuses: Statuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(policy: PolicyView, *others: Any) -> CpuPolicyStatus:
        if policy.name == "odd":
            raise ZeroDivisionError
        return policy_status(policy, *others)

    monkeypatch.setattr("numapin_operator.policies.status_writer.policy_status", failing)
    statuses.state.put_policy(statuses.cluster.put_policy("odd", {"nodeSelector": {"a": "b"}}))
    statuses.in_force("one")
    statuses.in_force("two")
    await statuses.clock.advance(3 * GATHER_SECONDS)
    assert statuses.written() == 2
    assert statuses.cluster.policies["odd"]["status"] == {}


async def test_a_new_policy_on_many_nodes_is_counted_in_slices(
    statuses: Statuses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_writer, "Slices", partial(Slices, slice_seconds=0.0))
    for number in range(500):
        statuses.state.put_node(node_view(f"node-{number}"))
    counted: set[int] = set()

    def all_counted() -> bool:
        counted.add(statuses.writer._tally.summary("policy", 1).governed)
        return 502 in counted

    await statuses.clock.advance(FIRST_PLAN_SECONDS + 2 * GATHER_SECONDS)
    await statuses.clock.until(all_counted)
    assert len(counted) > 10
