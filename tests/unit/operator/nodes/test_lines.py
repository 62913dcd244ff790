"""Assignments with lines: when they are written, what is told, and what a report decides."""

from typing import Any

from numapin_api.forms.report import status_of
from numapin_client.resources import NODE_REPORTS, NODE_TOPOLOGIES, Key
from numapin_operator.observe.assignments.report import ReportView, TopologyView
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, operator_of_one_node
from support.values.operator import enforcer_status, node_view

Body = dict[str, Any]

NODE = "node-1"


def body(cluster: FakeCluster) -> Body:
    found: Body = cluster.assignments[NODE]
    return found


def report(operator: Operator, *, enforced: int | None = None, **more: Any) -> None:
    """The enforcer reports on the newest assignment."""
    metadata = body(operator.cluster)["metadata"]
    seen = {"uid": metadata["uid"], "generation": metadata["generation"]}
    force = seen if enforced is None else seen | {"generation": enforced}
    status = enforcer_status(seen["generation"])
    status = {"conditions": status["conditions"], "observed": seen, "enforced": force} | more
    operator.state.put_report(ReportView.decode({"metadata": {"name": NODE}, "status": status}))


async def settle(operator: Operator) -> None:
    """Work, and have the watch deliver what was written."""
    await operator.work_until_idle()
    operator.observe()
    await operator.work_until_idle()


async def node_with_report(cluster: FakeCluster) -> Operator:
    """An operator whose node has an enforcer of this version."""
    cluster.put_policy("policy", {"reserved": {"count": 2}, "releaseDelay": "0s"})
    operator = Operator(cluster)
    operator.state.put_node(node_view())
    operator.observe()
    await operator.work_until_idle()
    topology = {"metadata": {"name": NODE}, "status": enforcer_status(1)["topology"]}
    operator.state.put_topology(TopologyView.decode(topology))
    report(operator, enforced=0)
    await settle(operator)
    report(operator)
    await settle(operator)
    return operator


def lines(cluster: FakeCluster) -> list[str]:
    return [one.split(" ")[0] for one in body(cluster)["spec"].get("assigned", ())]


async def test_the_objects_for_a_report_are_made_with_the_assignment() -> None:
    cluster = FakeCluster()
    await node_with_report(cluster)
    assert cluster.node_objects == {(NODE_REPORTS, NODE), (NODE_TOPOLOGIES, NODE)}


async def test_an_enforcer_that_writes_a_report_gets_lines() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    spec = body(cluster)["spec"]
    assert lines(cluster) == ["default/a"]
    assert spec["assigned"][0].endswith(" since=3 uid=uid-a")
    assert spec["pools"].keys() == {"reservedCPUs", "sharedCPUs"}
    assert "containers" not in spec


async def test_a_placed_pod_costs_one_write() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    before = cluster.writes
    operator.add_pod("a")
    await settle(operator)
    report(operator)
    await settle(operator)
    assert cluster.writes == before + 1


async def test_a_refused_pod_costs_one_write_and_no_generation() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    writes, generation = cluster.writes, body(cluster)["metadata"]["generation"]
    operator.add_pod("large", cpu="512")
    await settle(operator)
    assert (cluster.writes, body(cluster)["metadata"]["generation"]) == (writes + 1, generation)
    status = body(cluster)["status"]
    assert (status["refused"], status["refusals"][0]["pod"]) == (1, "large")
    operator.state.drop_pod(Key("large", "default"), NODE)
    await settle(operator)
    assert not body(cluster)["status"]


async def test_what_could_not_be_told_is_told_at_the_next_look() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("large", cpu="512")
    await settle(operator)
    told = body(cluster)["status"]
    cluster.assignments[NODE] = body(cluster) | {
        "status": {},
        "metadata": body(cluster)["metadata"] | {"resourceVersion": cluster._next()},
    }
    await settle(operator)
    assert body(cluster)["status"] == told


async def test_a_node_with_refused_pods_is_given_back() -> None:
    """What is told of them must go too: else the node never counts as given back."""
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("large", cpu="512")
    await settle(operator)
    del cluster.policies["policy"]
    await settle(operator)
    assert body(cluster)["spec"]["mode"] == "None"
    assert not body(cluster)["status"]
    report(operator)
    await settle(operator)
    assert cluster.assignments == {}


async def test_an_older_enforcer_gets_what_it_reads() -> None:
    """It reports in the NodeAssignment itself, whatever a newer one has left in the NodeReport."""
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    cpus = body(cluster)["spec"]["assigned"][0].split(" ")[2]
    generation = body(cluster)["metadata"]["generation"]
    cluster.put_status(NODE, enforcer_status(generation, running=["uid-a"]))
    await settle(operator)
    [one] = body(cluster)["spec"]["containers"]
    assert f"cpus={one['cpus']}" == cpus
    assert "assigned" not in body(cluster)["spec"]


async def test_an_enforcer_that_is_upgraded_moves_no_pod() -> None:
    cluster = FakeCluster()
    operator = await operator_of_one_node(cluster)
    operator.add_pod("a")
    await settle(operator)
    [one] = body(cluster)["spec"]["containers"]
    topology = body(cluster)["status"]["topology"]
    operator.state.put_topology(
        TopologyView.decode({"metadata": {"name": NODE}, "status": topology})
    )
    report(operator)
    assert not operator.state.takes_lines(NODE)
    held = body(cluster)
    metadata = held["metadata"] | {"resourceVersion": cluster._next()}
    cluster.assignments[NODE] = held | {"status": {}, "metadata": metadata}
    await settle(operator)
    [line] = body(cluster)["spec"]["assigned"]
    assert f" cpus={one['cpus']} " in line
    assert "containers" not in body(cluster)["spec"]


async def test_who_goes_back_gets_the_old_form_and_no_objects() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    operator.state.writes_lines = False
    operator.state.wake_all()
    await settle(operator)
    assert [one["pod"] for one in body(cluster)["spec"]["containers"]] == ["a"]
    assert cluster.node_objects == set()


async def test_cpus_are_released_when_the_report_that_knows_the_pod_does_not_see_it() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    operator.state.drop_pod(Key("a", "default"), NODE)
    await settle(operator)
    assert lines(cluster) == ["default/a"]  # the last report is older than the line
    report(operator)
    await settle(operator)
    assert lines(cluster) == ["default/a"]  # it runs
    report(operator, notRunning=["uid-a"])
    await settle(operator)
    assert lines(cluster) == []


async def test_a_report_that_is_deleted_releases_nothing() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    report(operator, notRunning=["uid-a"])
    await settle(operator)
    operator.state.drop_report(NODE)
    operator.state.drop_pod(Key("a", "default"), NODE)
    await settle(operator)
    assert lines(cluster) == ["default/a"]


async def test_a_damaged_report_stalls_the_node_and_changes_nothing() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    before = body(cluster)["spec"]
    report(operator, differences=[{"container": "main"}])
    operator.state.drop_pod(Key("a", "default"), NODE)
    await settle(operator)
    assert body(cluster)["spec"] == before
    assert "NodeReport" in (operator.state.assignments[NODE].problem or "")


async def test_what_the_operator_reads_is_what_tools_read() -> None:
    cluster = FakeCluster()
    operator = await node_with_report(cluster)
    operator.add_pod("a")
    await settle(operator)
    report(operator)
    view, shown = operator.state.assignments[NODE], operator.state.reports[NODE].status
    found = status_of(shown, view.uid, view.generation, view.spec.containers, view.form.since)
    assert tuple(found["running"]) == view.status.running == ("uid-a",)
