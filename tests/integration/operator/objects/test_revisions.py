"""The generation of a policy that has reached every node, as a ControllerRevision.

On a real API server: an operator that is killed amid a roll-out, revisions that people delete and
edit, names that collide when they are cut, and an operator in another namespace.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.client import Source
from numapin_client.errors import InvalidError
from numapin_client.resources import CONTROLLER_REVISIONS, CPU_POLICIES, NODE_ASSIGNMENTS, Json, Key
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import has, says
from support.real.operators.operator_world import RealWorld

NODES = 3
FIRST: Json = {"reserved": {"count": 2}, "rollout": {"maxConcurrent": 1}}
NO_POD: Json = {"podSelector": {"matchLabels": {"such": "none"}}}
SECOND: Json = FIRST | {"reserved": {"count": 3}, "pods": NO_POD}
"""By it no pod gets CPUs: what a node that waits gives tells by which settings it is planned."""


async def revisions(world: RealWorld, namespace: str = names.NAMESPACE) -> list[Json]:
    """Those of this test's policies."""
    source = Source(CONTROLLER_REVISIONS, namespace)
    found = (await world.admin.list_chunk(source, limit=0)).items
    return [one for one in found if one["metadata"]["name"].startswith(world.mark)]


async def stored(world: RealWorld, *generations: int, namespace: str = names.NAMESPACE) -> bool:
    found = await revisions(world, namespace)
    return sorted(one["revision"] for one in found) == list(generations)


async def in_force(world: RealWorld, log: Path) -> list[str]:
    """Nodes on which the first generation is in force."""
    nodes = [(await world.add_node(f"n{number}")).name for number in range(NODES)]
    await world.put_policy(FIRST, "policy")
    for field in ("policy", "pools"):
        for node in nodes:
            await until(lambda node=node, field=field: has(world, node, field), log)  # type: ignore[misc]
            await world.enforce(node)
    await until(lambda: says(world, "Ready", "True", "InForce"), log)
    await until(lambda: stored(world, 1), log)
    return nodes


async def changed(world: RealWorld, nodes: list[str]) -> list[str]:
    return [node for node in nodes if (await world.spec(node))["pools"]["reserved"] == "0-2"]


async def edit(world: RealWorld, nodes: list[str], log: Path) -> list[str]:
    """Edit the policy; the nodes that wait while the first one changes."""
    await world.put_policy(SECOND, "policy")

    async def begun() -> bool:
        return len(await changed(world, nodes)) == 1

    await until(begun, log)
    return [node for node in nodes if node not in await changed(world, nodes)]


async def finish(world: RealWorld, nodes: list[str], log: Path) -> None:
    async def finished() -> bool:
        for node in nodes:
            await world.enforce(node)
        return await stored(world, 2)

    await until(finished, log)


async def test_an_operator_that_is_killed_amid_a_rollout_plans_on_by_the_older_settings(
    world: RealWorld, operator: OperatorProcess
) -> None:
    nodes = await in_force(world, operator.log)
    waiting = await edit(world, nodes, operator.log)
    await operator.kill()
    await operator.start()
    await world.add_pod(waiting[-1], "late")
    await until(lambda: world.held(waiting[-1]), operator.log)
    assert await world.held(waiting[-1]) == {"late": "2-3"}
    assert await stored(world, 1)
    (one,) = await revisions(world)
    status = await world.policy_status(world.name("policy"))
    assert status["currentRevision"] == one["metadata"]["name"]
    assert "rolledOut" not in status
    policy = await world.admin.get(CPU_POLICIES, Key(world.name("policy")))
    (owner,) = one["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (policy["metadata"]["uid"], True)
    await finish(world, nodes, operator.log)


async def test_another_leader_reads_what_the_last_one_has_stored(
    world: RealWorld, operator: OperatorProcess, tmp_path: Path
) -> None:
    nodes = await in_force(world, operator.log)
    waiting = await edit(world, nodes, operator.log)
    await operator.kill()
    other = OperatorProcess(world.operator_kubeconfig, tmp_path / "other")
    other.log.parent.mkdir()
    await other.start()
    try:
        await world.add_pod(waiting[0], "late")
        await until(lambda: world.held(waiting[0]), other.log)
    finally:
        assert await other.stop() == 0
    assert await world.held(waiting[0]) == {"late": "2-3"}


async def test_a_revision_that_is_deleted_is_stored_again_and_its_loss_breaks_nothing(
    world: RealWorld, operator: OperatorProcess
) -> None:
    nodes = await in_force(world, operator.log)
    kept = await world.add_pod(nodes[-1], "kept")
    await until(lambda: world.held(nodes[-1]), operator.log)
    waiting = await edit(world, nodes, operator.log)
    (one,) = await revisions(world)
    await world.admin.delete(CONTROLLER_REVISIONS, Key.of(one))

    async def again() -> bool:
        found = await revisions(world)
        return [body["metadata"]["name"] for body in found] == [one["metadata"]["name"]]

    await until(again, operator.log)
    assert (await revisions(world))[0]["data"] == one["data"]
    await operator.kill()
    await world.admin.delete(CONTROLLER_REVISIONS, Key.of(one))
    before = {node: await world.spec(node) for node in waiting}
    await operator.start()
    witness = await world.add_pod(waiting[0], "witness")  # it shares: no pod gets CPUs now
    rest = [node for node in nodes if node not in waiting]
    await until(lambda: says(world, "Reconciling", "True", "WaitingForRollout"), operator.log)
    for node in waiting:
        after = await world.spec(node)
        assert after["pools"] == before[node]["pools"]
        assert after.get("containers") == before[node].get("containers")
    assert not await world.pod_is_deleted(kept)
    assert not await world.pod_is_deleted(witness)
    assert await changed(world, rest) == rest


async def test_what_people_edit_and_forge_is_not_believed(
    world: RealWorld, operator: OperatorProcess
) -> None:
    nodes = await in_force(world, operator.log)
    waiting = await edit(world, nodes, operator.log)
    (one,) = await revisions(world)
    key = Key.of(one)
    forged: Json = {"data": {"spec": {"reserved": {"count": 7}}}}
    with pytest.raises(InvalidError, match="immutable"):
        await world.admin.merge_patch(CONTROLLER_REVISIONS, key, forged)
    await world.admin.merge_patch(CONTROLLER_REVISIONS, key, {"revision": 99})
    await operator.kill()
    await operator.start()
    await world.add_pod(waiting[0], "late")
    await until(lambda: world.held(waiting[0]), operator.log)
    assert await world.held(waiting[0]) == {"late": "2-3"}

    await world.admin.delete(CONTROLLER_REVISIONS, key)
    metadata = {name: one["metadata"][name] for name in ("name", "namespace", "labels")}
    data = one["data"] | forged["data"]
    await world.admin.create(
        CONTROLLER_REVISIONS, {"metadata": metadata, "data": data, "revision": 1}
    )

    async def whole() -> bool:
        return [body["data"] for body in await revisions(world)] == [one["data"]]

    await until(whole, operator.log)


async def test_policies_whose_names_collide_when_they_are_cut_have_a_revision_each(
    world: RealWorld, operator: OperatorProcess
) -> None:
    long = "policy-" + "x" * 220
    for end in ("one", "two"):
        await world.put_policy(FIRST | {"nodeSelector": {"such": "none"}}, f"{long}{end}")
    await until(lambda: stored(world, 1, 1), operator.log)
    found = await revisions(world)
    owners = {one["metadata"]["ownerReferences"][0]["name"] for one in found}
    assert owners == {world.name(f"{long}{end}") for end in ("one", "two")}
    assert len({one["metadata"]["name"][:-17] for one in found}) == 1, "cut to the same name"


@asynccontextmanager
async def rights_in(world: RealWorld, namespace: str) -> AsyncIterator[None]:
    """The operator's Role and RoleBinding, in another namespace."""
    kubectl = world.plane.kubectl
    for kind in ("role", "rolebinding"):
        body = kubectl.get(kind, "numapin-operator", f"--namespace={names.NAMESPACE}")
        body["metadata"] = {"name": "numapin-operator", "namespace": namespace}
        await asyncio.to_thread(kubectl, "create", "-f", "-", text=json.dumps(body))
    yield


async def test_in_another_namespace_it_begins_again_and_moves_nothing(
    world: RealWorld, operator: OperatorProcess
) -> None:
    nodes = await in_force(world, operator.log)
    await world.add_pod(nodes[-1], "kept")
    await until(lambda: world.held(nodes[-1]), operator.log)
    waiting = await edit(world, nodes, operator.log)
    assert await operator.stop() == 0
    before = {node: await world.spec(node) for node in waiting}
    elsewhere = world.name("elsewhere")
    await asyncio.to_thread(world.plane.kubectl, "create", "namespace", elsewhere)
    try:
        await operator.start(f"--namespace={elsewhere}")  # without the rights there
        await until(lambda: "cannot be read" in operator.log.read_text(), operator.log)
        async with rights_in(world, elsewhere):
            for node in waiting:
                assert (await world.spec(node))["pools"] == before[node]["pools"]
            for node in nodes:
                spec = await world.spec(node)
                await world.enforce(node)
                assert spec["mode"] == "Static"

            async def finished() -> bool:
                for node in nodes:
                    await world.enforce(node)
                return await stored(world, 2, namespace=elsewhere)

            await until(finished, operator.log)
        assert await stored(world, 1), "the other installation's is not touched"
    finally:
        await asyncio.to_thread(
            world.plane.kubectl, "delete", "namespace", elsewhere, "--wait=false"
        )
    kept = await world.admin.get(NODE_ASSIGNMENTS, Key(nodes[-1]))
    assert [one["pod"] for one in kept["spec"]["containers"]] == [world.name("kept")]
