"""When a policy's status is written, and how often."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from numapin_api.status.policy import CpuPolicyStatus
from numapin_client.errors import (
    ClientError,
    ConnectionFailedError,
    ForbiddenError,
    TooManyRequestsError,
)
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.slices import Slices
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.policies import status_writer
from numapin_operator.policies.status import NodeOutcome, Phase, policy_status
from numapin_operator.policies.status_writer import (
    FIRST_PLAN_SECONDS,
    GATHER_SECONDS,
    StatusWriter,
)
from support.fakes.cluster import FakeCluster
from support.fakes.manual_clock import ManualClock
from support.real.lines_run import lines_run
from support.real.waiting import running
from support.values.operator import node_view, policy_view


class Statuses:
    """A status writer for one policy that governs the nodes `one` and `two`."""

    def __init__(self, cluster: FakeCluster | None = None) -> None:
        self.cluster = cluster or FakeCluster()
        self.clock, self.leading = ManualClock(), asyncio.Event()
        self.state = ClusterState(lambda _, urgent=False: None)
        self.writer = StatusWriter(self.cluster, self.state, self.leading, self.clock)
        for name in ("one", "two"):
            self.state.put_node(node_view(name))
        self.state.put_policy(self.cluster.put_policy("policy", {}))
        self.leading.set()

    def in_force(self, node: str) -> None:
        uid = self.cluster.policies["policy"]["metadata"]["uid"]
        self.writer.set_outcome(
            node, NodeOutcome(node, "policy", 1, Phase.IN_FORCE, policy_uid=uid)
        )

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
    statuses.cluster.failures = [ConnectionFailedError("PUT", "refused")] * 2
    statuses.in_force("one")
    statuses.in_force("two")
    await statuses.clock.advance(3 * GATHER_SECONDS)
    assert (statuses.cluster.failures, statuses.written()) == ([], None)
    await statuses.clock.advance(Backoff().base_seconds + 2 * GATHER_SECONDS)
    assert statuses.written() == 2


class Refusing(FakeCluster):
    """Refuses the status of the policies in `refusals`; counts the attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: dict[str, ClientError] = {}
        self.attempts = 0

    async def replace_policy_status(
        self, before: PolicyView, status: CpuPolicyStatus
    ) -> PolicyView:
        if error := self.refusals.get(before.name):
            self.attempts += 1
            raise error
        return await super().replace_policy_status(before, status)


async def test_a_status_that_stays_forbidden_is_tried_ever_more_rarely() -> None:
    """Neither time nor a stream of news has it written each time; others do not wait for it."""
    cluster = Refusing()
    statuses = Statuses(cluster)
    cluster.refusals["odd"] = ForbiddenError("PUT cpupolicies/odd/status", 403, {})
    statuses.state.put_policy(cluster.put_policy("odd", {"nodeSelector": {"a": "b"}}))
    async with running(statuses.writer.run()):
        statuses.in_force("one")
        statuses.in_force("two")
        await statuses.clock.advance(3 * GATHER_SECONDS)
        assert statuses.written() == 2
        for _ in range(1200):
            statuses.writer.policy_changed("odd")
            await statuses.clock.advance(1)
        assert 1200 / 30 - 1 <= cluster.attempts < 1200 / 5
        cluster.refusals.clear()
        await statuses.clock.advance(Backoff().cap_seconds + 2 * GATHER_SECONDS)
        assert cluster.policies["odd"]["status"] != {}
        assert not statuses.writer._backoffs


async def test_a_refused_status_waits_as_long_as_the_server_asks() -> None:
    cluster = Refusing()
    statuses = Statuses(cluster)
    cluster.refusals["policy"] = TooManyRequestsError("PUT", 429, {}, 40.0)
    statuses.in_force("one")
    statuses.in_force("two")
    async with running(statuses.writer.run()):
        for _ in range(39):
            await statuses.clock.advance(1)
            statuses.writer.policy_changed("policy")
        assert cluster.attempts == 1
        cluster.refusals.clear()
        await statuses.clock.advance(3)
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


def test_a_term_begins_without_ranking_the_policies_of_every_node() -> None:
    state = ClusterState()
    for number in range(500):
        state.put_node(node_view(f"node-{number}"))
    for number in range(10):
        state.put_policy_view(policy_view(f"policy-{number}"))
    begin = partial(StatusWriter, FakeCluster(), state, asyncio.Event(), ManualClock())
    assert lines_run(begin) < 500
