"""What the operator publishes for schedulers, on a real API server with their own definition."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.errors import NotFoundError
from numapin_client.resources import (
    CPU_POLICIES,
    NODE_RESOURCE_TOPOLOGIES,
    NODES,
    PODS,
    Json,
    Key,
)
from numapin_operator.noderesourcetopology.fingerprint import ATTRIBUTE, fingerprint
from numapin_operator.noderesourcetopology.publisher import FOREIGN, NO_KIND, NO_RIGHT, NOT_ENABLED
from support.real.audit import Audit, granted
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import RealWorld
from support.real.operators.resource_topologies import install_kind, published, remove_kind
from support.real.waiting import eventually

COMPONENT = "node-resource-topology"
PUBLISH: Json = {"reserved": {"count": 2}, "publish": {"nodeResourceTopology": "Zones"}}


@pytest.fixture
async def hasty(world: RealWorld, tmp_path: Path) -> AsyncIterator[OperatorProcess]:
    """An operator that publishes, with shorter waits."""
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path, hasty=True)
    await operator.start("--publish-topologies")
    yield operator
    await operator.stop()


def available(body: Json) -> dict[str, str]:
    """The CPUs that each zone has left."""
    return {zone["name"]: zone["resources"][0]["available"] for zone in body.get("zones", ())}


def attributes(body: Json) -> dict[str, str]:
    return {one["name"]: one["value"] for one in body.get("attributes", ())}


async def governed(world: RealWorld, operator: OperatorProcess, spec: Json) -> tuple[str, str]:
    """A policy and a node whose enforcer has reported."""
    policy, node = await world.put_policy(spec, "policy"), (await world.add_node("node")).name
    await until(lambda: world.spec(node), operator.log)
    await world.enforce(node)
    await until(lambda: has_pools(world, node), operator.log)
    return policy, node


async def message(world: RealWorld, policy: str) -> str:
    """What Ready of a policy says."""
    body = await world.admin.get(CPU_POLICIES, Key(policy))
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((one["message"] for one in conditions if one["type"] == "Ready"), "")


async def has_pools(world: RealWorld, node: str) -> bool:
    return "pools" in await world.spec(node)


async def test_an_object_follows_pods_and_policy(world: RealWorld, hasty: OperatorProcess) -> None:
    await install_kind(world.plane)
    async with world.component(COMPONENT):
        _, node = await governed(world, hasty, PUBLISH)

        async def left() -> int:
            return sum(map(int, available(await published(world.admin, node)).values()))

        async def is_left(count: int) -> bool:
            return await left() == count

        async def is_said(text: str) -> bool:
            return attributes(await published(world.admin, node)).get(ATTRIBUTE) == text

        async def is_gone() -> bool:
            return await published(world.admin, node) == {}

        await until(left, hasty.log)
        assert await left() == 6
        pod = await world.add_pod(node, "a", "2")
        await until(lambda: is_left(4), hasty.log)
        said = attributes(await published(world.admin, node))
        assert said[ATTRIBUTE] == fingerprint([])
        await world.admin.merge_patch(
            PODS, Key(pod.pod, "default"), {"status": {"phase": "Running"}}, subresource="status"
        )
        await until(lambda: is_said(fingerprint([("default", pod.pod)])), hasty.log)
        (owner,) = (await published(world.admin, node))["metadata"]["ownerReferences"]
        assert owner["uid"] == (await world.admin.get(NODES, Key(node)))["metadata"]["uid"]
        await world.put_policy({"reserved": {"count": 2}}, "policy")
        await until(is_gone, hasty.log)


async def test_what_the_deleted_policy_and_a_lost_operator_leave_is_deleted(
    world: RealWorld, tmp_path: Path
) -> None:
    await install_kind(world.plane)
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path)
    async with world.component(COMPONENT):
        await operator.start("--publish-topologies")
        policy, node = await governed(world, operator, PUBLISH)
        await until(lambda: published(world.admin, node), operator.log)
        await operator.kill()
        await world.delete_policy(policy)
        assert await published(world.admin, node)
        await operator.start("--publish-topologies")

        async def is_gone() -> bool:
            return await published(world.admin, node) == {}

        await until(is_gone, operator.log)
        await operator.stop()


async def test_the_component_grants_what_is_used_and_no_more(
    world: RealWorld, hasty: OperatorProcess
) -> None:
    await install_kind(world.plane)
    async with world.component(COMPONENT):
        audit = Audit(world.plane, names.OPERATOR_SERVICE_ACCOUNT)
        policy, node = await governed(world, hasty, PUBLISH)
        await until(lambda: published(world.admin, node), hasty.log)
        await world.add_pod(node, "a", "2")
        rights = granted(f"components/{COMPONENT}/rbac.yaml")

        async def has_patched() -> bool:
            return any(right in audit.used() for right in rights if right[2] == "patch")

        await until(has_patched, hasty.log)
        await world.delete_policy(policy)

        async def is_used() -> bool:
            return rights <= audit.used()

        await until(is_used, hasty.log)
        assert audit.forbidden() == []


async def test_the_object_of_another_writer_is_left_alone(
    world: RealWorld, hasty: OperatorProcess
) -> None:
    await install_kind(world.plane)
    node = world.name("node")
    theirs: Json = {"metadata": {"name": node}, "zones": [{"name": "node-0", "type": "Node"}]}
    made = await world.admin.create(NODE_RESOURCE_TOPOLOGIES, theirs, field_manager="nfd")
    async with world.component(COMPONENT):
        policy, _ = await governed(world, hasty, PUBLISH)

        async def is_named() -> bool:
            await world.enforce(node)
            ready = await message(world, policy)
            about = "TopologyOfAnotherWriter: not published, the object has another writer: nfd"
            return node in ready and about in ready

        await until(is_named, hasty.log)
        await world.add_pod(node, "a", "2")
        await until(lambda: world.held(node), hasty.log)
        await asyncio.sleep(1.5)
        assert await published(world.admin, node) == made
    assert hasty.log.read_text().count(FOREIGN) == 1
    assert "nfd" in hasty.log.read_text()
    await world.admin.delete(NODE_RESOURCE_TOPOLOGIES, Key(node))


async def test_one_of_ours_that_another_has_changed_is_theirs(
    world: RealWorld, hasty: OperatorProcess
) -> None:
    await install_kind(world.plane)
    async with world.component(COMPONENT):
        _, node = await governed(world, hasty, PUBLISH)
        await until(lambda: published(world.admin, node), hasty.log)
        patch: Json = {"zones": [{"name": "node-0", "type": "Node"}]}
        theirs = await world.admin.merge_patch(
            NODE_RESOURCE_TOPOLOGIES, Key(node), patch, field_manager="nfd"
        )
        await world.add_pod(node, "a", "2")
        await until(lambda: FOREIGN in hasty.log.read_text(), hasty.log)
        assert await published(world.admin, node) == theirs


async def test_labels_of_others_stay(world: RealWorld, hasty: OperatorProcess) -> None:
    await install_kind(world.plane)
    async with world.component(COMPONENT):
        _, node = await governed(world, hasty, PUBLISH)
        await until(lambda: published(world.admin, node), hasty.log)
        patch: Json = {"metadata": {"labels": {"a": "b"}}}
        await world.admin.merge_patch(NODE_RESOURCE_TOPOLOGIES, Key(node), patch)
        await world.add_pod(node, "a", "2")

        async def is_changed() -> bool:
            return "4" in available(await published(world.admin, node)).values()

        await until(is_changed, hasty.log)
        labels = (await published(world.admin, node))["metadata"]["labels"]
        assert labels == {"a": "b", names.MANAGED_BY_LABEL: names.MANAGED_BY}


async def test_without_the_kind_and_then_with_it(world: RealWorld, hasty: OperatorProcess) -> None:
    await remove_kind(world.plane)
    async with world.component(COMPONENT):
        _, node = await governed(world, hasty, PUBLISH)
        await until(lambda: NO_KIND in hasty.log.read_text(), hasty.log)
        await asyncio.sleep(2)
        assert hasty.log.read_text().count(NO_KIND) == 1
        await install_kind(world.plane)
        await until(lambda: published(world.admin, node), hasty.log)


async def test_without_the_right_pods_are_placed_as_ever(
    world: RealWorld, hasty: OperatorProcess
) -> None:
    await install_kind(world.plane)
    _, node = await governed(world, hasty, PUBLISH)
    await until(lambda: NO_RIGHT in hasty.log.read_text(), hasty.log)
    await world.add_pod(node, "a", "2")
    await until(lambda: world.held(node), hasty.log)
    async with world.component(COMPONENT):
        await until(lambda: published(world.admin, node), hasty.log)
    assert hasty.log.read_text().count(NO_RIGHT) == 1


async def test_without_the_option_it_is_said_once(
    world: RealWorld, operator: OperatorProcess
) -> None:
    _, node = await governed(world, operator, PUBLISH)
    await world.add_pod(node, "a", "2")
    await until(lambda: world.held(node), operator.log)
    assert operator.log.read_text().count(NOT_ENABLED) == 1


async def test_a_node_that_is_deleted_takes_its_object_with_it(
    world: RealWorld, hasty: OperatorProcess
) -> None:
    await install_kind(world.plane)
    async with world.component(COMPONENT):
        _, node = await governed(world, hasty, PUBLISH)
        await until(lambda: published(world.admin, node), hasty.log)
        await world.admin.delete(NODES, Key(node))

        async def is_gone() -> bool:
            return await published(world.admin, node) == {}

        await eventually(is_gone)
    with pytest.raises(NotFoundError):
        await world.admin.get(NODE_RESOURCE_TOPOLOGIES, Key(node))
