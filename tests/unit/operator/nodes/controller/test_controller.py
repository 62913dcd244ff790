"""The controller against the fake API server: it converges, and no stale write wins."""

import asyncio
from dataclasses import replace

import pytest

from numapin_client.errors import ConnectionFailedError
from numapin_operator.installation.leadership import Leadership, NotLeadingError
from numapin_operator.nodes.decide.decision import VANISHED_SECONDS
from numapin_operator.nodes.decide.waits import ENFORCER_SECONDS
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held, operator_of_one_node, report, spec
from support.real.waiting import running
from support.values.operator import node_view


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
async def operator(cluster: FakeCluster) -> Operator:
    return await operator_of_one_node(cluster)


async def test_a_pod_is_placed_with_one_write(operator: Operator, cluster: FakeCluster) -> None:
    before = cluster.writes
    operator.add_pod("a")
    await operator.work_until_idle()
    assert (held(cluster), cluster.writes - before) == ({"a": "2-3"}, 1)


async def test_planning_again_writes_nothing(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a")
    await operator.work_until_idle()
    before = cluster.writes
    for _ in range(3):
        operator.state.wake_all()
        await operator.work_until_idle()
    assert cluster.writes == before


async def test_a_restart_changes_nothing(operator: Operator, cluster: FakeCluster) -> None:
    operator.add_pod("a")
    operator.add_pod("b", "4")
    await operator.work_until_idle()
    before = dict(cluster.assignments["node-1"])
    restarted = Operator(cluster)
    restarted.state.put_node(node_view())
    restarted.add_pod("b", "4")
    restarted.add_pod("a")
    restarted.observe()
    await restarted.work_until_idle()
    assert cluster.assignments["node-1"] == before


async def test_a_stale_operator_reads_the_assignment_again(
    operator: Operator, cluster: FakeCluster
) -> None:
    """A rival gave `b` the CPUs that we would have given `a`."""
    rival = Operator(cluster)
    rival.state.put_node(node_view())
    rival.observe()
    rival.add_pod("b")
    await rival.work_until_idle()
    operator.add_pod("a")
    operator.add_pod("b")
    await operator.work_until_idle()
    assert held(cluster) == {"a": "4-5", "b": "2-3"}


async def test_an_enforcers_report_in_between_costs_one_more_attempt(
    operator: Operator, cluster: FakeCluster
) -> None:
    def report_once() -> None:
        cluster.before_write = lambda: None
        report(cluster)

    cluster.before_write = report_once
    operator.add_pod("a")
    await operator.work_until_idle()
    assert held(cluster) == {"a": "2-3"}


async def test_an_assignment_that_a_user_deleted_is_created_again(
    operator: Operator, cluster: FakeCluster
) -> None:
    del cluster.assignments["node-1"]
    operator.add_pod("a")
    await operator.work_until_idle()
    written = spec(cluster)["policy"]
    del written["hardware"]
    uid = cluster.policies["policy"]["metadata"]["uid"]
    assert written == {"name": "policy", "generation": 1, "since": 1, "uid": uid}


async def test_an_assignment_that_exists_already_is_taken_over(cluster: FakeCluster) -> None:
    first = Operator(cluster)
    cluster.put_policy("policy", {"reserved": {"count": 2}})
    first.state.put_node(node_view())
    first.observe()
    await first.work_until_idle()
    report(cluster)
    blind = Operator(cluster)
    blind.state.put_node(node_view())
    blind.state.put_policy(cluster.policies["policy"])
    blind.add_pod("a")
    await blind.work_until_idle()
    assert held(cluster) == {"a": "2-3"}


async def test_failed_writes_are_retried(operator: Operator, cluster: FakeCluster) -> None:
    cluster.failures = [ConnectionFailedError("PUT", "refused") for _ in range(2)]
    operator.add_pod("a")
    await operator.work_until_idle()
    assert (held(cluster), cluster.failures) == ({"a": "2-3"}, [])


async def test_nothing_is_written_unless_leading(operator: Operator, cluster: FakeCluster) -> None:
    operator.leading.clear()
    before = cluster.writes
    operator.add_pod("a")
    working = asyncio.create_task(operator.work_until_idle())
    for _ in range(10):
        await asyncio.sleep(0)
    assert cluster.writes == before
    operator.leading.set()
    await working
    assert held(cluster) == {"a": "2-3"}


async def test_a_deleted_nodes_assignment_is_deleted_after_a_while(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.add_pod("a")
    await operator.work_until_idle()
    before = spec(cluster)
    operator.state.drop_node("node-1")
    await operator.work_until_idle()
    operator.clock.stand_still(VANISHED_SECONDS - 1)
    operator.queue.add("node-1")
    await operator.work_until_idle()
    assert spec(cluster) == before
    operator.clock.stand_still(1)
    await operator.work_until_idle()
    assert cluster.assignments == {}, "nobody had to wake it"


async def test_a_node_that_comes_back_and_goes_again_has_the_whole_time(
    operator: Operator, cluster: FakeCluster
) -> None:
    for _ in range(2):
        operator.state.drop_node("node-1")
        await operator.work_until_idle()
        operator.clock.stand_still(VANISHED_SECONDS - 1)
        operator.state.put_node(replace(node_view(), uid="uid-again"))
        await operator.work_until_idle()
    assert "node-1" in cluster.assignments


async def test_without_a_policy_cgroups_are_released_and_then_the_assignment_is_deleted(
    operator: Operator, cluster: FakeCluster
) -> None:
    operator.add_pod("a")
    await operator.work_until_idle()
    cluster.policies.clear()
    operator.observe()
    await operator.work_until_idle()
    assert (spec(cluster)["mode"], spec(cluster)["containers"]) == ("None", [])
    report(cluster)
    operator.observe()
    await operator.work_until_idle()
    assert cluster.assignments == {}


async def test_a_node_that_no_enforcer_releases_is_named_with_what_to_do(
    operator: Operator, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.policies.clear()
    operator.observe()
    await operator.work_until_idle()
    await operator.clock.advance(ENFORCER_SECONDS - 1)
    await operator.work_until_idle()
    assert "keeps its CPU sets" not in caplog.text
    await operator.clock.advance(2)
    await operator.work_until_idle()
    (record,) = [one for one in caplog.records if "keeps its CPU sets" in one.message]
    assert record.__dict__["node"] == "node-1"
    assert "numapin release --pods" in record.__dict__["why"]


async def test_a_deposed_leader_stops_at_a_conflict(
    operator: Operator, cluster: FakeCluster
) -> None:
    """Its plan is made of an old state: it must not be written over the new leader's."""
    leadership = Leadership(operator.clock)

    def depose() -> None:
        cluster.before_write = leadership.check
        report(cluster)

    cluster.before_write = depose
    operator.add_pod("a")
    with pytest.raises(NotLeadingError):
        await operator.controller.reconcile("node-1")
    assert held(cluster) == {}


async def test_a_node_whose_write_is_cancelled_is_planned_in_the_next_term(
    operator: Operator, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "replace_spec", lambda *_: asyncio.Event().wait())
        operator.add_pod("a")
        async with running(operator.controller.work(operator.leading)):
            await operator.clock.run_tasks()
    await operator.work_until_idle()
    assert held(cluster) == {"a": "2-3"}
