"""`numapin check` through a real API server, against a real enforcer on this machine."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api.names import NAMESPACE
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.node.played_kubelet import Kubelet
from support.fakes.worlds.asked_cluster import Capture, ask
from support.real.enforcer_node import Node, assigned, spec
from support.real.waiting import eventually

ROLE = Path(__file__).parents[4] / "manifests" / "components" / "cpu-metrics" / "rbac.yaml"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
HOSTILE = ") R 1 (x\n2"
LOOP = """
import os, sys
os.sched_setaffinity(0, {1})
with open("/proc/self/comm", "w") as file:
    file.write(sys.argv[1])
print("there", flush=True)
while True:
    pass
"""


@contextmanager
def foreign_task() -> Iterator[None]:
    """A busy process of no container on CPU 1, which calls itself as it likes."""
    command = [sys.executable, "-c", LOOP, HOSTILE]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def own_address() -> str:
    """An address of this machine that the API server's proxy takes: it refuses loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("198.51.100.1", 9))  # sends nothing
        return str(one.getsockname()[0])


@pytest.fixture
def enforcer(contract: ControlPlane, node: Node) -> Node:
    """The node with the object of the enforcer's pod, which kubelet and controller would keep."""
    container = {
        "name": "enforcer",
        "image": "x",
        "ports": [{"name": "health", "containerPort": node.port}],
    }
    labels = {"app.kubernetes.io/component": "enforcer"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"enforcer-{node.name}", "labels": labels},
        "spec": {
            "nodeName": node.name,
            "containers": [container],
            "serviceAccountName": "numapin-enforcer",
        },
    }
    contract.api.create(PODS, body)
    addresses = {"podIP": own_address(), "podIPs": [{"ip": own_address()}]}
    path = f"{PODS}/enforcer-{node.name}"
    made = contract.api.get(path) | {"status": {"phase": "Running", **addresses}}
    contract.api.request("PUT", f"{path}/status", made)
    return node


@pytest.fixture
def checker(contract: ControlPlane, tmp_path: Path) -> Path:
    """The login of somebody with the role of the component, and nothing else."""
    plane = contract
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    if not plane.api.exists(f"{accounts}/checker"):
        about = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "checker"}}
        plane.api.create(accounts, about)
        plane.api.create(f"{RBAC}/roles", yaml.safe_load(ROLE.read_text()))
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "checker"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "numapin-check"},
            "subjects": [{"kind": "ServiceAccount", "name": "checker", "namespace": NAMESPACE}],
        }
        plane.api.create(f"{RBAC}/rolebindings", binding)
    return log_in(plane, ServiceAccount(NAMESPACE, "checker"), tmp_path / "checker")


async def check(login: Path, node: Node, capsys: Capture) -> tuple[int, dict[str, Any]]:
    """The exit status, and what was measured in two seconds."""
    capsys.readouterr()
    status = await ask(login, "check", f"node/{node.name}", "--seconds", "2", "-o", "json")
    found = capsys.readouterr()
    assert found.out, found.err
    return status, json.loads(found.out)


async def test_a_foreign_task_is_named_whatever_it_calls_itself(
    enforcer: Node,
    kubelet: Kubelet,
    checker: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = enforcer
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main")
    monkeypatch.setenv("NUMAPIN_CPU_METRICS", "true")
    await node.start(**{"health-address": f"0.0.0.0:{node.port}"})
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(node.reports_exclusive, "the container to be exclusive")
    with foreign_task():
        status, found = await check(checker, node, capsys)
    assert (status, found["disturbed"], found["node"]) == (3, True, node.name)
    (one,) = found["containers"]
    assert (one["cpus"], one["podUID"]) == ("1", pod.uid)
    assert one["foreignSeconds"] > 0.2
    (cpu,) = one["perCPU"]
    seconds = {task["name"]: task["seconds"] for task in cpu["tasks"] if not task["kernel"]}
    assert seconds[r") R 1 (x\n2"] > 0.2
    timer = {row["name"]: row["count"] for row in cpu["interrupts"]}
    assert timer["Local timer interrupts"] > 0
    assert node.probe("cpus")[0] == 200


async def test_without_the_option_there_is_no_page_and_the_command_says_so(
    enforcer: Node, checker: Path, capsys: Capture
) -> None:
    node = enforcer
    await node.start(**{"health-address": f"0.0.0.0:{node.port}"})
    assert node.probe("cpus")[0] == 404
    assert await ask(checker, "check", f"node/{node.name}") == 1
    assert "runs without --cpu-metrics" in capsys.readouterr().err
    await node.stop()
    assert await ask(checker, "check", f"node/{node.name}") == 1
    assert "the API server does not reach pod" in capsys.readouterr().err
