"""`numapin serve` beside a real API server: what changes there, and what a login may not read."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from numapin_client.client import ApiClient
from numapin_client.resources import NODE_ASSIGNMENTS, Key
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from support.page.served import Seen, served

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def node(admin: ApiClient) -> AsyncIterator[str]:
    """The name of a node of this test's own, which has an assignment."""
    name = f"serve-{secrets.token_hex(4)}"
    metadata, spec = {"name": name}, {"pools": {"reservedCPUs": "0", "sharedCPUs": "0-7"}}
    await admin.create(NODE_ASSIGNMENTS, {"metadata": metadata, "spec": spec})
    yield name
    await admin.delete(NODE_ASSIGNMENTS, Key(name))


async def test_it_follows_the_cluster(plane: ControlPlane, admin: ApiClient, node: str) -> None:
    async with (
        served("--kubeconfig", str(plane.kubeconfig)) as url,
        ClientSession() as session,
        session.get(f"{url}/events") as stream,
    ):
        seen = Seen()
        await seen.until(stream, lambda one: node in one.rows and one.status.get("loaded"))
        assert seen.status["notes"] == []
        assert seen.rows[node]["reason"] == "not reported"
        line = "default/served main cpus=2-3 since=1 uid=u"
        pools = {"reservedCPUs": "0", "sharedCPUs": "0-1,4-7"}
        patch = {"spec": {"assigned": [line], "pools": pools}}
        await admin.merge_patch(NODE_ASSIGNMENTS, Key(node), patch)
        await seen.until(stream, lambda one: one.rows[node]["exclusive"] == 2)
        async with session.get(f"{url}/api/search?pod=default/served") as found:
            assert {"pod": "default/served", "node": node} in (await found.json())["pods"]
        async with session.get(f"{url}/api/pods/default/served-elsewhere") as missing:
            assert missing.status == 404


async def account(plane: ControlPlane, folder: Path, role: str = "") -> Path:
    """How a new account logs in; `role` is what it may do in the whole cluster."""
    kubectl, name = plane.kubectl, f"sees-{secrets.token_hex(4)}"
    kubectl("create", "serviceaccount", name, "--namespace=default")
    if role:
        subject = f"--serviceaccount=default:{name}"
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", subject)
    return await asyncio.to_thread(log_in, plane, ServiceAccount("default", name), folder)


async def test_a_viewer_sees_the_nodes_and_what_it_may_not_read(
    plane: ControlPlane, node: str, tmp_path: Path
) -> None:
    role = ROOT / "manifests" / "base" / "viewer-rbac.yaml"
    plane.kubectl("apply", "--server-side", "-f", str(role))
    login = await account(plane, tmp_path, "numapin-viewer")
    async with (
        served("--kubeconfig", str(login)) as url,
        ClientSession() as session,
        session.get(f"{url}/events") as stream,
    ):
        seen = Seen()
        await seen.until(stream, lambda one: node in one.rows and one.status.get("notes"))
        assert "may not list nodes in the whole cluster" in "".join(seen.status["notes"])


async def test_without_any_right_it_says_which_one_is_missing(
    plane: ControlPlane, tmp_path: Path
) -> None:
    login = await account(plane, tmp_path)
    async with (
        served("--kubeconfig", str(login)) as url,
        ClientSession() as session,
        session.get(f"{url}/events") as stream,
    ):
        seen = Seen()
        await seen.until(stream, lambda one: one.status.get("forbidden"))
        assert "may not list nodeassignments.numapin.io" in seen.status["problem"]
        assert seen.rows == {}
