"""The operator's role grants what the operator calls, and no more: seen in the audit log."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_api import names
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODES, Key
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.processes.ports import choose
from support.real.operator_world import OperatorProcess, RealWorld, until

ROOT = Path(__file__).parents[3]

Right = tuple[str, str, str]
"""API group, resource with its subresource, and verb."""

USER = f"system:serviceaccount:{names.NAMESPACE}:{names.OPERATOR_SERVICE_ACCOUNT}"

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}


@pytest.fixture
def audited_plane(control_plane: ControlPlane, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that writes down each request of the operator."""
    policy, log = tmp_path / "audit.yaml", tmp_path / "audit.log"
    policy.write_text(yaml.safe_dump(AUDIT_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    ports = ControlPlanePorts(*choose(3))
    plane = ControlPlane(tmp_path / "plane", ports, control_plane.programs, flags=flags)
    try:
        plane.start()
        overlay = ROOT / "manifests" / "overlays" / "default"
        plane.kubectl("apply", "--server-side", "-k", str(overlay))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all")
        plane.kubectl("get", "nodeassignments,cpupolicies")
        yield plane
    finally:
        plane.stop()


@pytest.fixture
async def world(audited_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[RealWorld]:
    async with connect(kubeconfig_login(str(audited_plane.kubeconfig))) as admin:
        made = RealWorld(audited_plane, tmp_path, admin)
        yield made
        await made.stack.aclose()


def audited(world: RealWorld) -> list[dict[str, Any]]:
    """Each request of the operator about objects, as the API server wrote it down."""
    lines = (world.folder / "audit.log").read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith("\n")]
    return [event for event in events if "resource" in event.get("objectRef", {})]


def used(world: RealWorld) -> set[Right]:
    rights = set()
    for event in audited(world):
        about = event["objectRef"]
        parts = (about["resource"], about.get("subresource"))
        resource = "/".join(part for part in parts if part)
        rights.add((about.get("apiGroup", ""), resource, event["verb"]))
    return rights


def granted() -> set[Right]:
    text = (ROOT / "manifests" / "base" / "operator-rbac.yaml").read_text()
    return {
        (group, resource, verb)
        for document in yaml.safe_load_all(text)
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


async def do_everything(world: RealWorld, operator: OperatorProcess) -> None:
    """Create, replace and delete assignments, write statuses and Events, evict, read again."""
    evict = {"reserved": {"count": 2}, "onUnsatisfiable": "Evict"}
    await world.put_policy(evict, "policy")
    node, other = (await world.add_node("node")).name, (await world.add_node("other")).name
    for name in (node, other):
        await until(lambda name=name: world.spec(name), operator.log)  # type: ignore[misc]
        await world.enforce(name)
    placed = await world.add_pod(node, "a", "4")
    await until(lambda: world.held(node), operator.log)
    refused = await world.add_pod(node, "b", "4")
    await until(lambda: world.pod_is_deleted(refused), operator.log)
    await until(lambda: world.event_notes(refused), operator.log)

    async def read_again() -> bool:
        """A report and a new pod at once, until a write has met a newer version."""
        pod = await world.add_pod(node, cpu="1")
        await asyncio.gather(*(world.enforce(node, pod.uid) for _ in range(5)))
        await world.delete_pod(pod)
        return ("numapin.io", "nodeassignments", "get") in used(world)

    await until(read_again, operator.log)
    await world.delete_pod(placed)
    await world.admin.delete(NODES, Key(other))

    async def gone() -> bool:
        return await world.assignment(other) == {}

    await until(gone, operator.log)


async def delete_while_away(world: RealWorld, operator: OperatorProcess) -> None:
    """Delete a Node and a pod with CPUs while no operator sees it: both are read once."""
    node, other = (await world.add_node("kept")).name, (await world.add_node("lost")).name
    for name in (node, other):
        await until(lambda name=name: world.spec(name), operator.log)  # type: ignore[misc]
        await world.enforce(name)
    pod = await world.add_pod(node, "c", "2")
    await until(lambda: world.held(node), operator.log)
    assert await operator.stop() == 0, operator.log.read_text()[-4000:]
    await world.delete_pod(pod)
    await world.admin.delete(NODES, Key(other))
    await operator.start("--leader-elect")

    async def both_gone() -> bool:
        return await world.held(node) == {} and await world.assignment(other) == {}

    await until(both_gone, operator.log)


async def test_the_role_grants_what_is_used_and_no_more(world: RealWorld, tmp_path: Path) -> None:
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path)
    await operator.start("--leader-elect")
    try:
        await do_everything(world, operator)
        await delete_while_away(world, operator)
    finally:
        assert await operator.stop() == 0, operator.log.read_text()[-4000:]
    assert used(world) - granted() == set(), "forbidden"
    assert granted() - used(world) == set(), "never used"
    forbidden = [event for event in audited(world) if event["responseStatus"]["code"] == 403]
    assert forbidden == []
