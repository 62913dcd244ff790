"""A control plane with the objects of a cluster, before and after our CRDs are installed."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODE_ASSIGNMENTS, NODES, PODS, Json, Key
from numapin_lab.controlplane.servers import ControlPlane
from support.fakes.worlds.asked_cluster import RESOURCES, Bare
from support.fakes.worlds.described_cluster import World, cluster
from support.real.installing.own_plane import own_plane
from support.values.operator import Body, pod_body

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def bare_plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane of this module's own: others install the CRDs on the common one."""
    with own_plane(tmp_path_factory.mktemp("cli"), control_plane.programs) as plane:
        yield plane


@pytest.fixture(scope="session")
def bare_answers(bare_plane: ControlPlane) -> dict[str, Bare]:
    """The answers of a server without the CRDs."""
    answers = {}
    for words in (
        "get",
        "get node-1",
        "status",
        "explain pod/x",
        "explain node/x",
        "explain policy/x",
    ):
        command = [sys.executable, "-m", "numapin_cli.main", *words.split()]
        answers[words] = asyncio.run(_run(command, bare_plane.kubeconfig))
    return answers


async def _run(command: list[str], kubeconfig: Path) -> Bare:
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--kubeconfig", str(kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    assert out == b""
    assert process.returncode is not None
    return Bare(process.returncode, error.decode())


@pytest.fixture(scope="session")
def world() -> World:
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("pending", "4", node=""),
    )


@pytest.fixture(scope="session")
def plane(bare_plane: ControlPlane, bare_answers: dict[str, Bare], world: World) -> ControlPlane:
    """The control plane with the CRDs, and the objects of `world`."""
    kubectl = bare_plane.kubectl
    kubectl("apply", "--server-side", "-k", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
    kubectl("get", "cpupolicies,nodeassignments,nodereports,nodetopologies")
    asyncio.run(_put_all(bare_plane, json.loads(world.dump())["items"]))
    return bare_plane


async def _put_all(plane: ControlPlane, bodies: list[Body]) -> None:
    """Create the objects; the UIDs that the server gives replace those of the fake one."""
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as admin:
        uids: dict[str, str] = {}
        for body in sorted(bodies, key=lambda one: one["kind"] == "NodeAssignment"):
            text = json.dumps(body)
            for old, new in uids.items():
                text = text.replace(f'"{old}"', f'"{new}"')
            await _put(admin, json.loads(text), uids)


async def _put(admin: ApiClient, body: Json, uids: dict[str, str]) -> None:
    resource, status = RESOURCES[body["kind"]], body.pop("status", None)
    metadata = body["metadata"]
    old = metadata.pop("uid", "")
    for key in ("resourceVersion", "creationTimestamp", "generation", "ownerReferences"):
        metadata.pop(key, None)
    if resource is PODS:
        body["spec"]["terminationGracePeriodSeconds"] = 0  # no kubelet ends it
    if resource is NODE_ASSIGNMENTS and "policy" in body["spec"]:
        body["spec"]["policy"]["since"] = 1  # all of it is the first generation here
    made = await admin.create(resource, body)
    if old:
        uids[old] = made["metadata"]["uid"]
    if status and resource in {NODES, NODE_ASSIGNMENTS}:
        if resource is NODE_ASSIGNMENTS:
            status["observedGeneration"] = made["metadata"]["generation"]
        patch = {"status": status}
        await admin.merge_patch(resource, Key.of(made), patch, subresource="status")


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as opened:
        yield opened
