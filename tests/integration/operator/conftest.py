"""A real API server with numapin installed, and the operator as a process of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_lab.controlplane.servers import ControlPlane
from numapin_operator.api_server import ApiCluster
from support.real.operator_world import OperatorProcess, RealWorld

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def installed_plane(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with the manifests that users apply."""
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "-k", str(ROOT / "manifests" / "overlays" / "default"))
    kubectl(
        "wait",
        "--for=condition=Established",
        "crd",
        "-l",
        "app.kubernetes.io/name=numapin",
        "--timeout=120s",
    )
    # It retries while the API server still prepares to store them.
    kubectl("get", "nodeassignments,cpupolicies")
    return control_plane


@pytest.fixture
async def world(installed_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[RealWorld]:
    """Users, kubelets and enforcers."""
    async with connect(kubeconfig_login(str(installed_plane.kubeconfig))) as admin:
        made = RealWorld(installed_plane, tmp_path, admin)
        login = kubeconfig_login(str(made.operator_kubeconfig))
        api = await made.stack.enter_async_context(connect(login))
        made.cluster = ApiCluster(api, "test")
        try:
            yield made
        finally:
            await made.clear()


@pytest.fixture
async def operator(world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    """The operator, running."""
    process = OperatorProcess(world.operator_kubeconfig, tmp_path)
    await process.start()
    try:
        yield process
    finally:
        assert await process.stop() == 0, process.log.read_text()[-4000:]
