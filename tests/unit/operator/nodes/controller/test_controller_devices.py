"""A pod whose node does not report its devices: how long it waits, and what is told of it."""

from numapin_client.resources import Key
from numapin_daemon.telemetry.exposition import expose
from numapin_operator.observe.pods.parser import parse_pod
from support.fakes.cluster import FakeCluster
from support.fakes.operator import Operator, held
from support.real.telemetry.prometheus import parse
from support.values.operator import enforcer_status, node_view, pod_body

NIC = "example.com/nic"


def report(cluster: FakeCluster, *names: str) -> None:
    """Report all in force, and a NIC on the only NUMA node; these pods have one."""
    generation = cluster.assignments["node-1"]["metadata"]["generation"]
    near = {"resource": NIC, "numaNodes": "0", "count": 1}
    rows = [near | {"podUID": f"uid-{name}", "container": "main"} for name in names]
    devices = {"devices": {"resources": [near], "containers": rows}}
    cluster.put_status("node-1", enforcer_status(generation) | devices)


async def operator_with_devices(cluster: FakeCluster) -> Operator:
    spec = {"reserved": {"count": 2}, "topology": {"policy": "BestEffort"}}
    cluster.put_policy("policy", spec)
    made = Operator(cluster)
    made.state.put_node(node_view())
    for _ in range(3):
        made.observe()
        await made.work_until_idle()
        report(cluster)
    made.observe()
    await made.work_until_idle()
    return made


def add_pod(operator: Operator, name: str) -> None:
    body = pod_body(name)
    for amounts in body["spec"]["containers"][0]["resources"].values():
        amounts[NIC] = "1"
    operator.state.put_pod(Key(name, "default"), parse_pod(body))


def placed_without(operator: Operator) -> float:
    meter = operator.controller._outputs.meter
    return parse(expose(meter.collect()))["numapin_placed_without_devices_total"][""]


async def test_it_is_placed_without_after_two_seconds() -> None:
    cluster = FakeCluster()
    operator = await operator_with_devices(cluster)
    add_pod(operator, "a")
    await operator.work_until_idle()
    assert held(cluster) == {}
    assert cluster.notices == []
    operator.clock.stand_still(1.9)
    operator.state.wake_all()
    await operator.work_until_idle()
    assert held(cluster) == {}
    await operator.clock.advance(0.2)
    await operator.work_until_idle()
    assert held(cluster) == {"a": "2-3"}
    assert placed_without(operator) == 1
    (event,) = cluster.notices
    assert event.note.endswith(f"within 2 s its node has not reported which {NIC} it has")
    report(cluster)
    operator.observe()
    await operator.work_until_idle()
    assert operator.controller._memory == {}, "nothing of it is remembered"


async def test_a_report_ends_the_wait_at_once() -> None:
    cluster = FakeCluster()
    operator = await operator_with_devices(cluster)
    add_pod(operator, "a")
    await operator.work_until_idle()
    report(cluster, "a")
    operator.observe()
    await operator.work_until_idle()
    assert held(cluster) == {"a": "2-3"}
    assert placed_without(operator) == 0
