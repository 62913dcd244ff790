"""Operator, enforcer and a collector, all of them real: one trace for each pod, and all metrics."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from numapin_api.names import ENFORCER_SERVICE_ACCOUNT, NAMESPACE
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import PODS, Key
from numapin_daemon.telemetry.metric import Kind
from numapin_daemon.telemetry.span import trace_id_text
from numapin_enforcer.telemetry import table as enforcer_table
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import COLLECTOR
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.node.containerd import Runtime
from numapin_lab.node.played_kubelet import Kubelet
from numapin_lab.processes.ports import choose
from numapin_operator.telemetry import table as operator_table
from support.real.enforcer_node import Node, spec
from support.real.operators.operator_process import OperatorProcess
from support.real.operators.operator_world import RealWorld
from support.real.telemetry.collector import Collector, ReceivedSpan, collector, moment
from support.real.telemetry.prometheus import prometheus
from support.real.waiting import eventually

STEPS = ["wait", "plan", "write", "accept", "enforce", "report"]
"""The spans of a pod with one container, in the order in which they begin."""

KINDS = {Kind.COUNTER: "Sum", Kind.GAUGE: "Gauge", Kind.HISTOGRAM: "Histogram"}


@pytest.fixture
async def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    program = provide([COLLECTOR.name])[COLLECTOR.name].path
    with collector(program, tmp_path / "collector", choose(1)[0]) as made:
        await eventually(made.is_ready, "the collector")
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
async def world(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[RealWorld]:
    install(control_plane)
    async with connect(kubeconfig_login(str(control_plane.kubeconfig))) as admin:
        made = RealWorld(control_plane, tmp_path, admin)
        yield made
        await made.clear()


@pytest.fixture
async def kubelet(containerd: Runtime, tmp_path: Path) -> AsyncIterator[Kubelet]:
    (tmp_path / "logs").mkdir()
    made = Kubelet(containerd, f"{containerd.cgroup.path}/otlp", tmp_path / "logs")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def node(world: RealWorld, kubelet: Kubelet, tmp_path: Path) -> AsyncIterator[Node]:
    name = (await world.add_node(cpus=2)).name
    account = ServiceAccount(NAMESPACE, ENFORCER_SERVICE_ACCOUNT, name)
    options = {
        "kubeconfig": str(log_in(world.plane, account, tmp_path / "login")),
        "cri-socket": str(kubelet.runtime.socket),
        "cgroup-root": kubelet.root,
        "state-dir": str(tmp_path / "state"),
        "run-dir": str(tmp_path / "run"),
        "kubelet-state-dir": str(tmp_path / "kubelet"),
    }
    made = Node(name, tmp_path, world.plane.api, options, choose(1)[0])
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
async def operator(world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    process = OperatorProcess(world.operator_kubeconfig, tmp_path)
    yield process
    assert await process.stop() == 0, process.log.read_text()[-4000:]


async def placed(world: RealWorld, node: Node, kubelet: Kubelet) -> str:
    """Have a pod placed whose container starts at once; returns the pod's UID."""
    pod = await world.add_pod(node.name, cpu="1")
    running = await kubelet.run_pod(pod.pod, uid=pod.uid)
    container = (await world.admin.get(PODS, Key(pod.pod, pod.namespace)))["spec"]["containers"][0]
    await kubelet.run(running, container["name"])
    await eventually(node.reports_exclusive, "the pod to be in force")
    return pod.uid


async def test_the_way_of_a_pod_is_one_trace_over_both_processes(
    receiver: Collector,
    world: RealWorld,
    operator: OperatorProcess,
    node: Node,
    kubelet: Kubelet,
) -> None:
    await node.start()
    await operator.start("--log-format=json")
    await world.put_policy({"reserved": {"cpus": "0"}})
    await eventually(partial(has_pools, world, node.name), "an assignment")
    uid = await placed(world, node, kubelet)
    spans = await eventually(lambda: complete(receiver, uid), "all spans")
    steps = sorted((one for one in spans if one.parent), key=lambda one: (one.begin, one.end))
    (root,) = (one for one in spans if not one.parent)
    assert [one.name for one in steps] == STEPS
    assert {one.service for one in steps[:3]} == {root.service} == {"numapin-operator"}
    assert {one.service for one in steps[3:]} == {"numapin-enforcer"}
    assert {one.parent for one in steps} == {root.id}
    assert root.begin == steps[0].begin
    # The operator may see the status before the enforcer has the API server's answer to it.
    assert all(moment(one.begin) <= moment(root.end) for one in steps)
    for one in spans:
        assert one.trace == trace_id_text(uid)
        assert one.attributes["k8s.pod.uid"] == uid
        assert one.attributes["k8s.node.name"] == node.name
    assert f'"trace_id": "{trace_id_text(uid)}"' in operator.log.read_text()
    assert node.log.count(f"trace_id={trace_id_text(uid)}") == len(STEPS[3:])


async def test_the_collector_gets_every_metric_with_its_type(
    receiver: Collector, operator: OperatorProcess, node: Node, kubelet: Kubelet
) -> None:
    await node.start()
    await operator.start()
    for service, table in (
        ("numapin-enforcer", enforcer_table.METRICS),
        ("numapin-operator", operator_table.METRICS),
    ):
        counters = (one for one in table if one.kind is Kind.COUNTER and one.begins_with)
        expected = {one.name: KINDS[one.kind] for one in counters}

        def arrived(service: str = service, names: frozenset[str] = frozenset(expected)) -> bool:
            return names <= receiver.metrics(service).keys()

        await eventually(arrived, f"the metrics of {service}")
        found = receiver.metrics(service)
        assert {name: found[name]["DataType"] for name in expected} == expected
        kinds = {one.name: KINDS[one.kind] for one in table}
        assert {name: one["DataType"] for name, one in found.items()}.items() <= kinds.items()
        monotonic = {name for name, one in found.items() if one.get("IsMonotonic") == "true"}
        assert monotonic == {name for name in found if kinds[name] == "Sum"}


async def test_a_daemon_works_and_ends_although_no_collector_answers(
    node: Node, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{choose(1)[0]}")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    await node.start()
    assert node.probe("metrics")[0] == 200
    assert await node.stop() == 0


async def test_a_protocol_that_is_not_there_keeps_neither_daemon_from_its_work(
    node: Node, kubelet: Kubelet, operator: OperatorProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a webhook sets the variables of every pod."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    await node.start()
    await node.applied(spec(shared="0-1"))
    assert "set it to http/protobuf" in node.condition("Ready")[2]
    assert "numapin_otlp_refused 1" in node.probe("metrics")[1]
    assert "set it to http/protobuf" in node.log
    await operator.start()
    assert await node.stop() == 0


async def test_prometheus_scrapes_the_operator_too(
    world: RealWorld, operator: OperatorProcess, node: Node, tmp_path: Path
) -> None:
    port = choose(1)[0]
    await node.start()
    await operator.start(f"--health-address=127.0.0.1:{port}", "--numa-metrics")
    await world.put_policy({"reserved": {"cpus": "0"}})
    with prometheus(tmp_path / "prometheus", choose(1)[0], f"127.0.0.1:{port}") as server:
        await eventually(lambda: server.value("numapin_leads") == 1, "a scrape")
        await eventually(lambda: server.value("numapin_numa_available") == 1, "a scrape of it")
        types = server.types()
    expected = {one.name: str(one.kind) for one in operator_table.METRICS}
    assert {name: types.get(name) for name in expected} == expected


async def has_pools(world: RealWorld, node: str) -> bool:
    """Whether pods can be placed on a node."""
    return "pools" in await world.spec(node)


def complete(receiver: Collector, uid: str) -> list[ReceivedSpan]:
    """The spans of a pod's trace, once the root and all steps are there."""
    found = [one for one in receiver.spans() if one.trace == trace_id_text(uid)]
    return found if len(found) > len(STEPS) else []
