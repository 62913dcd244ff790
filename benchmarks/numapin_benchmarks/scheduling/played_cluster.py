"""A cluster of played nodes of two NUMA nodes, with the real operator."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from numapin_api import names
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.topology_scheduler import CRD
from numapin_lab.played.enforcers import node_name

CRDS: Final = Path(__file__).parents[3] / "charts" / "numapin" / "crd-files"
PODS: Final = "/api/v1/namespaces/default/pods"
POLICIES: Final = "/apis/numapin.io/v1beta1/cpupolicies"
ASSIGNMENTS: Final = "/apis/numapin.io/v1beta1/nodeassignments"
OBJECTS: Final = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
RUNNING: Final = {"phase": "Running"}
READY_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.2


def prepare(plane: ControlPlane, nodes: int, *, publishes: bool) -> None:
    """Install the kinds and a policy, and register the nodes, each with a pod that always runs."""
    for file in (*sorted(CRDS.glob("numapin.io_*.yaml")), CRD):
        plane.kubectl("apply", "--server-side", "-f", str(file))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    plane.kubectl("get", "cpupolicies,noderesourcetopologies")
    for number in range(nodes):
        _register(plane, number)
    plane.kubectl("taint", "nodes", "--all", "node.kubernetes.io/not-ready:NoSchedule-")
    plane.kubectl("create", "namespace", names.NAMESPACE)
    spec = {
        "topology": {"policy": "SingleNUMANode"},
        "memory": {"policy": "Static"},
        "publish": {"nodeResourceTopology": "Zones" if publishes else "None"},
    }
    kind = {"apiVersion": names.API_VERSION, "kind": names.CPU_POLICY_KIND}
    plane.api.create(POLICIES, kind | {"metadata": {"name": "all"}, "spec": spec})


def _register(plane: ControlPlane, number: int) -> None:
    name, amounts = node_name(number), {"cpu": "16", "memory": "64Gi", "pods": "110"}
    plane.api.create("/api/v1/nodes", {"metadata": {"name": name}})
    status = {
        "capacity": amounts,
        "allocatable": amounts | {"cpu": "15"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    report(plane, "Node", f"/api/v1/nodes/{name}", status)
    container = {"name": "c", "image": "none"}
    spec = {"nodeName": name, "containers": [container]}
    plane.api.create(PODS, {"metadata": {"name": f"idle-{number}"}, "spec": spec})
    report(plane, "Pod", f"{PODS}/idle-{number}", RUNNING)


def report(plane: ControlPlane, kind: str, path: str, status: dict[str, Any]) -> None:
    """Write a status as a kubelet."""
    body = {"apiVersion": "v1", "kind": kind, "status": status}
    body["metadata"] = {"name": path.rpartition("/")[2]}
    plane.api.request("PATCH", f"{path}/status?fieldManager=kubelet&force=true", body)


@contextmanager
def operator(plane: ControlPlane, log: Path) -> Iterator[None]:
    """The operator, which publishes where the policy says so."""
    options = ("--no-leader-elect", "--publish-topologies", "--health-address=127.0.0.1:0")
    command = (sys.executable, "-m", "numapin_operator", f"--kubeconfig={plane.kubeconfig}")
    with log.open("wb") as file:
        environment = {**os.environ, "KUBECONFIG": ""}
        process = subprocess.Popen([*command, *options], stdout=file, stderr=file, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def wait_until_planned(plane: ControlPlane, nodes: int, log: Path, *, publishes: bool) -> None:
    """Wait until every node has CPUs to give, and its object if there must be one.

    Raises:
        TimeoutError: with the end of the operator's log.
    """
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        with suppress(AnswerError):  # the API server prepares to store the kinds
            listed = plane.api.get(ASSIGNMENTS)["items"]
            planned = sum("pools" in (one.get("spec") or {}) for one in listed)
            if planned == nodes and (
                not publishes or len(plane.api.get(OBJECTS)["items"]) == nodes
            ):
                return
        time.sleep(LOOK_SECONDS)
    raise TimeoutError(log.read_text()[-2000:])
