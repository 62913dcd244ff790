"""An API server with what a report collects, and machines that are nodes or not."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_client.resources import EVENTS, PODS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import fill
from support.fakes.worlds.described_cluster import World, cluster
from support.values.forms import all_in_three
from support.values.leaking import CANARY, leaking
from support.values.operator import Body, pod_body


@pytest.fixture(scope="module")
def world() -> World:
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("c", "1", node="node-2"),
    )


def own(name: str, component: str, node: str, restarts: int = 0) -> Body:
    body = pod_body(name, "100m", node=node, namespace="numapin-system")
    labels = {"app.kubernetes.io/name": "numapin", "app.kubernetes.io/component": component}
    body["metadata"]["labels"] = labels
    container = body["spec"]["containers"][0]
    container["args"] = ["--verbose", f"--otlp-headers=authorization={CANARY}"]
    container["env"] = [{"name": "X", "value": CANARY}]
    body["status"] = {"containerStatuses": [{"name": "main", "restartCount": restarts}]}
    return body


@pytest.fixture(params=["one-object", "three-objects"])
def is_apart(request: pytest.FixtureRequest) -> bool:
    """Whether each node has three objects, as v1beta1 has them, or one."""
    return bool(request.param == "three-objects")


@pytest.fixture
async def server(world: World, is_apart: bool) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        dump = json.loads(world.dump())
        dump["items"] = all_in_three(dump["items"]) if is_apart else dump["items"]
        dump["items"] = [leaking(one) if one["kind"] == "Pod" else one for one in dump["items"]]
        fill(started, dump)
        for body in (
            own("numapin-operator-1", "operator", "node-2"),
            own("numapin-enforcer-1", "enforcer", "node-1", restarts=1),
            own("numapin-enforcer-2", "enforcer", "node-2"),
        ):
            started.put(PODS, body)
            line = f"started with Authorization: Bearer {CANARY}-abcdef\n"
            started.logs[body["metadata"]["name"]] = line.encode()
        for number, controller in enumerate(("numapin.io/operator", "kubelet")):
            event = {
                "metadata": {"name": f"e{number}", "namespace": "default"},
                "reportingController": controller,
                "reason": f"R{number}",
                "note": "wanted 4 CPUs",
                "regarding": {"kind": "Pod", "namespace": "default", "name": "b"},
            }
            started.put(EVENTS, event)
        yield started


@pytest.fixture
def no_node(tmp_path: Path) -> Path:
    """A machine without cgroups of pods."""
    folder = tmp_path / "machine"
    (folder / "sys").mkdir(parents=True)
    return folder


@pytest.fixture
def a_node(tmp_path: Path) -> list[str]:
    """The flags for a node with the hardware of the machine that runs the test."""
    machine = tmp_path / "machine"
    machine.mkdir()
    (machine / "sys").mkdir()
    for one in Path("/sys").iterdir():
        if one.name != "fs":
            (machine / "sys" / one.name).symlink_to(one)
    (machine / "proc").symlink_to("/proc")
    tree = machine / "sys" / "fs"
    pods = tree / "cgroup" / "kubepods"
    pods.mkdir(parents=True)
    for folder in (pods.parent, pods):
        for each, text in CGROUP.items():
            (folder / each).write_text(text)
    kubelet = tmp_path / "kubelet"
    kubelet.mkdir()
    (kubelet / "cpu_manager_state").write_text('{"policyName":"none"}')
    return ["--root", str(machine), "--kubelet-root-dir", str(kubelet)]


CGROUP = {
    "cgroup.controllers": "cpuset cpu memory",
    "cpuset.cpus": "0-3",
    "cpuset.mems": "0",
    "cpuset.cpus.effective": "0-3",
    "cpuset.mems.effective": "0",
}
