"""The operator's role grants what the operator calls, and no more: seen in the audit log.

What a role lacks that an administrator has cut is on the readiness probe.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.client import connect
from numapin_client.errors import ConflictError, NotFoundError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import LEASES, NODE_REPORTS, NODES, PODS, Json, Key
from numapin_daemon.clock import SystemClock
from numapin_lab.processes.ports import choose, is_free
from numapin_operator.heartbeats.marker import Marker
from numapin_operator.heartbeats.silence import Beat
from support.real.audit import Audit, Right, granted
from support.real.operators.operator_process import OperatorProcess, probe, until
from support.real.operators.operator_role import Role
from support.real.operators.operator_world import RealWorld
from support.real.proxies.holding_proxy import holding_proxy
from support.real.waiting import eventually
from support.suite.left_out import since_kubernetes
from support.values.operator import REPORTER, enforcer_status


@pytest.fixture
def audit(world: RealWorld) -> Audit:
    return Audit(world.plane, names.OPERATOR_SERVICE_ACCOUNT)


async def refuse(world: RealWorld, operator: OperatorProcess, node: str) -> None:
    """Have a pod told that it was refused; then it is gone, with what it took of the node."""
    pod = await world.add_pod(node, "told", "7")
    told = Key(pod.pod, "default")

    async def is_told() -> bool:
        found = (await world.admin.get(PODS, told))["metadata"]
        return names.REFUSED_ANNOTATION in (found.get("annotations") or {})

    await until(is_told, operator.log)
    await world.delete_pod(pod)


async def edit(world: RealWorld, policy: str, spec: Json, running: dict[str, str]) -> None:
    """Have one generation of a policy reach all nodes after the other."""

    async def is_stored(but: str) -> str:
        for name, uid in running.items():
            await world.enforce(name, *filter(None, (uid,)))
        name = str((await world.policy_status(policy)).get("currentRevision") or "")
        return name if name != but else ""

    first = await eventually(lambda: is_stored(""))
    await world.put_policy(spec | {"reserved": {"count": 1}}, "policy")
    await eventually(lambda: is_stored(first))


async def do_everything(world: RealWorld, operator: OperatorProcess) -> None:
    """Create, replace and delete assignments, write statuses and Events, evict.

    The assignment of a Node that no policy selects any more is deleted once it is released.
    """
    near: Json = {"topology": {"policy": "BestEffort"}}
    share = near | {"reserved": {"count": 2}, "rollout": {"maxConcurrent": "100%"}}
    evict = share | {"onUnsatisfiable": "Evict"}
    policy = await world.put_policy(share, "policy")
    node, other = (await world.add_node("node")).name, (await world.add_node("other")).name
    for name in (node, other):
        await until(lambda name=name: world.spec(name), operator.log)  # type: ignore[misc]
        await world.enforce(name)
    await refuse(world, operator, node)
    await world.put_policy(evict, "policy")
    placed = await world.add_pod(node, "a", "4")
    await until(lambda: world.held(node), operator.log)
    refused = await world.add_pod(node, "b", "4")
    await until(lambda: world.pod_is_deleted(refused), operator.log)
    await until(lambda: world.event_notes(refused), operator.log)
    for driver in ("dra.cpu", "gpu.example"):
        claim = await world.add_claim("", driver)
        await world.allocate(claim, driver)
        await world.add_pod(node, "claiming" + driver.replace(".", "-"), claim=claim.name)
    await edit(world, policy, evict, {node: placed.uid, other: ""})
    await world.delete_pod(placed)
    unselected = {"metadata": {"labels": {"mark": None}}}
    await world.admin.merge_patch(NODES, Key(other), unselected)

    async def gone() -> bool:
        if await world.assignment(other):
            await world.enforce(other)
        return await world.assignment(other) == {}

    await until(gone, operator.log)
    await until(lambda: world.policy_status(policy), operator.log)


async def delete_while_away(world: RealWorld, operator: OperatorProcess, audit: Audit) -> None:
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

    async def both_noticed() -> bool:
        return await world.held(node) == {} and ("", "nodes", "get") in audit.used()

    await until(both_noticed, operator.log)
    assert await world.assignment(other) != {}, "it stays for some minutes"


async def write_behind_a_watch(world: RealWorld, folder: Path) -> None:
    """Let a write meet a newer version than the watch has delivered: it is read again."""
    async with holding_proxy(kubeconfig_login(str(world.operator_kubeconfig))) as proxy:
        operator = OperatorProcess(proxy.kubeconfig(folder), folder)
        await operator.start("--leader-elect")
        try:
            node = (await world.add_node("behind")).name
            await until(lambda: world.spec(node), operator.log)
            await world.enforce(node)
            await world.add_pod(node, "d", "1")
            await until(lambda: world.held(node), operator.log)
            proxy.hold("nodeassignments")
            await world.add_owner(node)
            await world.add_pod(node, "e", "1")

            async def both() -> bool:
                return len(await world.held(node)) == 2

            await until(both, operator.log)
        finally:
            assert await operator.stop() == 0, operator.log.read_text()[-4000:]


async def mark(marker: Marker, node: str, beat: Beat) -> None:
    """Report a silent enforcer, as often as the operator's other writes come between."""
    while True:
        with suppress(ConflictError):
            return await marker.mark(node, beat)


async def mark_a_silent_enforcer(world: RealWorld) -> None:
    """What the operator does when an enforcer has not renewed its Lease for its duration."""
    node = (await world.add_node("silent")).name
    await until(lambda: world.spec(node))
    await world.enforce(node)
    body = {"metadata": {"name": node, "namespace": names.NAMESPACE}}
    beat = Beat.decode(await world.admin.create(LEASES, body))
    login = kubeconfig_login(str(world.operator_kubeconfig))
    async with connect(login, user_agent="numapin-operator") as api:
        marker = Marker(api, names.NAMESPACE, REPORTER, SystemClock())
        await mark(marker, node, beat)
        ready = find((await world.assignment(node))["status"]["conditions"])
        assert ready == ("Unknown", "EnforcerUnknown")
        said = {"status": {"conditions": enforcer_status(1)["conditions"]}}
        await world.admin.merge_patch(NODE_REPORTS, Key(node), said, subresource="status")
        await mark(marker, node, beat)
    report = await world.admin.get(NODE_REPORTS, Key(node))
    assert find(report["status"]["conditions"]) == ("Unknown", "EnforcerUnknown")


def find(conditions: list[Json]) -> tuple[str, str]:
    """Status and reason of the condition Ready."""
    ready = next(one for one in conditions if one["type"] == "Ready")
    return ready["status"], ready["reason"]


@since_kubernetes("1.34")  # ResourceClaims are read too
async def test_the_role_grants_what_is_used_and_no_more(
    world: RealWorld, audit: Audit, tmp_path: Path
) -> None:
    with suppress(NotFoundError):
        await world.admin.delete(LEASES, Key(names.LEADER_LEASE, names.NAMESPACE))
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path)
    await operator.start("--leader-elect")
    async with world.component("eviction"):
        try:
            await do_everything(world, operator)
            await mark_a_silent_enforcer(world)
            await delete_while_away(world, operator, audit)
            await operator.stop()
            await write_behind_a_watch(world, tmp_path)
        finally:
            assert await operator.stop() == 0, operator.log.read_text()[-4000:]
    files = (
        "base/operator-rbac.yaml",
        "base/operator-refusals.yaml",
        "components/eviction/rbac.yaml",
    )
    rights = set[Right]().union(*map(granted, files))
    assert audit.used() - rights == set(), "forbidden"
    assert rights - audit.used() == set(), "never used"
    assert audit.forbidden() == []


async def test_what_the_role_lacks_is_named_until_it_is_granted(
    world: RealWorld, tmp_path: Path
) -> None:
    role, (port,) = Role(world.plane), choose(1)
    page = f"http://127.0.0.1:{port}/readyz"
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path)

    async def says(status: int, *words: str) -> bool:
        found, text = await probe(page)
        return found == status and all(word in text for word in words)

    await role.cut("namespaces", "cpupolicies/status")
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(operator.start(f"--health-address=127.0.0.1:{port}"))
            await until(lambda: not is_free(port), operator.log)
            await until(lambda: says(503, "namespaces: ", "is forbidden"), operator.log)
            await role.cut("cpupolicies/status")
        await world.put_policy({"reserved": {"count": 2}}, "policy")
        node = (await world.add_node("node")).name
        await until(lambda: says(503, "right to update cpupolicies/status: "), operator.log)
        await until(lambda: world.spec(node), operator.log)
        await role.cut()
        await until(lambda: says(200), operator.log)
    finally:
        await role.cut()
        assert await operator.stop() == 0, operator.log.read_text()[-4000:]
