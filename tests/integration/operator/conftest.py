"""A real API server with numapin installed, and the operator as a process of its own."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_lab.controlplane.servers import ControlPlane
from numapin_operator.api_server import ApiCluster
from support.real.installing.own_plane import own_plane
from support.real.operators.operator_process import OperatorProcess
from support.real.operators.operator_world import RealWorld
from support.values.operator import REPORTER

ROOT = Path(__file__).parents[3]


def installed(plane: ControlPlane) -> ControlPlane:
    """A control plane with the manifests that users apply."""
    kubectl = plane.kubectl
    kubectl("apply", "--server-side", "-k", str(ROOT / "manifests" / "overlays" / "default"))
    ours = ("-l", "app.kubernetes.io/name=numapin")
    kubectl("wait", "--for=condition=Established", "crd", *ours, "--timeout=120s")
    # It retries while the API server still prepares to store them.
    kubectl("get", "nodeassignments,cpupolicies")
    return plane


@pytest.fixture(scope="session")
def installed_plane(control_plane: ControlPlane) -> ControlPlane:
    """The control plane of all tests with numapin on it."""
    return installed(control_plane)


@pytest.fixture(scope="module")
def breakable_plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """One of a module's own, which its tests may stop and restore."""
    folder = tmp_path_factory.mktemp("breakable")
    with own_plane(folder, control_plane.programs) as plane:
        yield installed(plane)


@asynccontextmanager
async def world_on(plane: ControlPlane, folder: Path) -> AsyncIterator[RealWorld]:
    """Users, kubelets and enforcers on a control plane."""
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as admin:
        made = RealWorld(plane, folder, admin)
        login = kubeconfig_login(str(made.operator_kubeconfig))
        api = await made.stack.enter_async_context(connect(login))
        made.cluster = ApiCluster(api, REPORTER)
        try:
            yield made
        finally:
            await made.clear()


@pytest.fixture
async def world(installed_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[RealWorld]:
    """Users, kubelets and enforcers."""
    async with world_on(installed_plane, tmp_path) as made:
        yield made


@pytest.fixture
async def breakable_world(
    breakable_plane: ControlPlane, tmp_path: Path
) -> AsyncIterator[RealWorld]:
    """The same on a control plane that the test may stop and restore."""
    async with world_on(breakable_plane, tmp_path) as made:
        yield made


@pytest.fixture
async def operator(world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    """The operator, running."""
    process = OperatorProcess(world.operator_kubeconfig, tmp_path)
    await process.start()
    try:
        yield process
    finally:
        assert await process.stop() == 0, process.log.read_text()[-4000:]
