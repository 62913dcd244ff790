"""A real node for the enforcer: own cgroups, containerd, and an API server with our CRDs."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api.names import ENFORCER_SERVICE_ACCOUNT, NAMESPACE
from numapin_lab.controlplane.installation import install
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.node.containerd import Runtime
from numapin_lab.node.played_kubelet import Kubelet, Pod
from numapin_lab.processes.ports import choose
from support.real.enforcer_node import Node, assigned, spec
from support.real.waiting import eventually

NODE = {"apiVersion": "v1", "kind": "Node"}


@pytest.fixture(scope="session")
def contract(control_plane: ControlPlane) -> ControlPlane:
    """The API server with all of numapin but its pods."""
    install(control_plane)
    return control_plane


@pytest.fixture
async def kubelet(containerd: Runtime, tmp_path: Path) -> AsyncIterator[Kubelet]:
    """Plays the kubelet, in this test's own cgroup."""
    (tmp_path / "logs").mkdir()
    made = Kubelet(
        containerd, f"{containerd.cgroup.path}/{secrets.token_hex(3)}", tmp_path / "logs"
    )
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def node(contract: ControlPlane, kubelet: Kubelet, tmp_path: Path) -> AsyncIterator[Node]:
    """The node; its enforcer is not started yet, and will have the rights of its role only."""
    name = f"node-{secrets.token_hex(4)}"
    contract.api.create("/api/v1/nodes", NODE | {"metadata": {"name": name}})
    account = ServiceAccount(NAMESPACE, ENFORCER_SERVICE_ACCOUNT, name)
    options = {
        "kubeconfig": str(log_in(contract, account, tmp_path / "login")),
        "cri-socket": str(kubelet.runtime.socket),
        "cgroup-root": kubelet.root,
        "state-dir": str(tmp_path / "state"),
        "run-dir": str(tmp_path / "run"),
        "kubelet-state-dir": str(tmp_path / "kubelet"),
        "resync-seconds": "2",
    }
    made = Node(name, tmp_path, contract.api, options, choose(1)[0])
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
async def exclusive(node: Node, kubelet: Kubelet) -> tuple[Pod, str]:
    """A pod whose container has CPU 1 exclusively, and that container's cgroup.

    The runtime has written its set too, so it will not write it again once the enforcer has ended.
    """
    pod = await kubelet.run_pod("exclusive")
    container_id = await kubelet.run(pod, "main")
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(node.reports_exclusive, "the container to be reported exclusive")
    await kubelet.until_remembered(container_id, "1")
    return pod, f"{pod.cgroup}/{container_id}"
