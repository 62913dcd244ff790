"""What the cache lacks is not gone: a watch may be late, above all after a failover."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_client.errors import ConnectionFailedError
from numapin_client.resources import Key
from numapin_operator.nodes.decide.decision import VANISHED_SECONDS
from numapin_operator.nodes.lookups.absence import BehindError
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held, report
from support.values.operator import node_view, pod_view

A, B = Key("a", "default"), Key("b", "default")


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
async def successor(cluster: FakeCluster) -> Operator:
    """An operator that takes over; its predecessor gave CPUs to `a` and `b`."""
    cluster.put_policy("policy", {"reserved": {"count": 2}})
    first = Operator(cluster)
    first.state.put_node(node_view())
    first.observe()
    await first.work_until_idle()
    report(cluster)
    first.observe()
    first.add_pod("a")
    first.add_pod("b")
    await first.work_until_idle()
    assert held(cluster) == {"a": "2-3", "b": "4-5"}
    second = Operator(cluster)
    second.observe()
    return second


async def test_the_assignment_of_a_node_that_is_only_unseen_stays(
    successor: Operator, cluster: FakeCluster
) -> None:
    before = dict(cluster.assignments)
    cluster.nodes["node-1"] = node_view()
    with pytest.raises(BehindError, match="Node node-1"):
        await successor.controller.reconcile("node-1")
    assert cluster.assignments == before
    del cluster.nodes["node-1"]
    await successor.controller.reconcile("node-1")
    assert cluster.assignments == before, "pods of a Node that is registered again run on"
    successor.clock.stand_still(VANISHED_SECONDS)
    await successor.controller.reconcile("node-1")
    assert cluster.assignments == {}


async def test_nothing_is_deleted_while_the_node_cannot_be_read(
    successor: Operator, cluster: FakeCluster
) -> None:
    cluster.failures = [ConnectionFailedError("GET", "refused")]
    with pytest.raises(ConnectionFailedError):
        await successor.controller.reconcile("node-1")
    assert "node-1" in cluster.assignments


async def test_a_recreated_node_that_is_unseen_keeps_its_assignment(
    successor: Operator, cluster: FakeCluster
) -> None:
    """It is another Node with another UID; it takes the assignment over once it is seen."""
    cluster.nodes["node-1"] = replace(node_view(), uid="uid-again")
    with pytest.raises(BehindError):
        await successor.controller.reconcile("node-1")
    successor.state.put_node(cluster.nodes["node-1"])
    successor.add_pod("a")
    successor.add_pod("b")
    await successor.controller.reconcile("node-1")
    assert held(cluster) == {"a": "2-3", "b": "4-5"}


async def test_the_cpus_of_a_pod_that_is_only_unseen_are_not_given_away(
    successor: Operator, cluster: FakeCluster
) -> None:
    successor.state.put_node(node_view())
    cluster.pod_views[B] = pod_view("b")
    successor.add_pod("c")
    with pytest.raises(BehindError, match="Pod default/b"):
        await successor.controller.reconcile("node-1")
    assert held(cluster) == {"b": "4-5", "c": "2-3"}, "a is gone, as the API server says"
    del cluster.pod_views[B]
    await successor.controller.reconcile("node-1")
    assert held(cluster) == {"c": "2-3"}


@pytest.mark.parametrize("other", ["ended", "recreated"])
async def test_a_pod_that_ended_or_was_recreated_is_gone(
    successor: Operator, cluster: FakeCluster, other: str
) -> None:
    successor.state.put_node(node_view())
    change: dict[str, Any] = {"terminal": True} if other == "ended" else {"uid": "uid-again"}
    cluster.pod_views[A] = replace(pod_view("a"), **change)
    cluster.pod_views[B] = pod_view("b")
    with pytest.raises(BehindError):
        await successor.controller.reconcile("node-1")
    assert held(cluster) == {"b": "4-5"}


async def test_nothing_is_released_while_a_pod_cannot_be_read(
    successor: Operator, cluster: FakeCluster
) -> None:
    successor.state.put_node(node_view())
    cluster.failures = [ConnectionFailedError("GET", "refused")]
    with pytest.raises(ConnectionFailedError):
        await successor.controller.reconcile("node-1")
    assert held(cluster) == {"a": "2-3", "b": "4-5"}


async def test_what_was_seen_to_be_deleted_is_not_read(
    successor: Operator, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    successor.state.put_node(node_view())
    successor.add_pod("a")
    successor.add_pod("b")
    await successor.controller.reconcile("node-1")
    monkeypatch.delattr(FakeCluster, "read_pod")
    monkeypatch.delattr(FakeCluster, "read_node")
    successor.state.drop_pod(A, "node-1")
    await successor.controller.reconcile("node-1")
    assert held(cluster) == {"b": "4-5"}
    successor.state.drop_node("node-1")
    await successor.controller.reconcile("node-1")
    successor.clock.stand_still(VANISHED_SECONDS)
    await successor.controller.reconcile("node-1")
    assert cluster.assignments == {}
