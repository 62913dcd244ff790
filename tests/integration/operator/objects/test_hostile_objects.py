"""What tenants and enforcers can really write, all at once: it concerns their own object alone."""

import copy
from typing import Any

from numapin_client.resources import PODS, Json, Key
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import RealWorld
from support.values.operator import enforcer_status, pod_body


async def add_hostile_pod(world: RealWorld, node: str, what: str, **changes: Any) -> None:
    """Create a pod as a tenant who may set `spec.nodeName`."""
    body = pod_body(world.name(what), "1", node=node)
    del body["metadata"]["uid"], body["metadata"]["creationTimestamp"]
    body["metadata"] |= changes.get("metadata", {})
    container = body["spec"]["containers"][0]
    for side in ("requests", "limits"):
        container["resources"][side] = {"cpu": "1", "memory": "1Mi"} | changes.get("amounts", {})
    body["spec"]["containers"] = [
        copy.deepcopy(container) | {"name": f"c{index}"}
        for index in range(changes.get("containers", 1))
    ]
    await world.admin.create(PODS, body)


async def remove(world: RealWorld, *pods: str) -> None:
    for what in pods:
        key = Key(world.name(what), "default")
        await world.admin.delete(PODS, key)


def refusals(spec: Json) -> dict[str, str]:
    """The reason of each refused pod."""
    return {one["pod"]: one["reason"] for one in spec.get("refused", ())}


async def test_hostile_objects_hurt_nobody_else(
    world: RealWorld, operator: OperatorProcess
) -> None:
    good, bad = (await world.add_node("good")).name, (await world.add_node("bad")).name
    policy = await world.put_policy({"reserved": {"count": 2}, "memory": {"policy": "Static"}}, "p")
    await until(lambda: world.spec(good), operator.log)
    await until(lambda: world.spec(bad), operator.log)
    await world.enforce(good)
    topology = enforcer_status(1)["topology"]
    overlapping = [{"id": number, "cpus": "0-7"} for number in range(200)]
    await world.report(bad, enforcer_status(1) | {"topology": topology | {"sockets": overlapping}})

    mirror = {"annotations": {"kubernetes.io/config.mirror": "not a uid"}}
    await add_hostile_pod(world, good, "mirror", metadata=mirror)
    await add_hostile_pod(world, good, "pages", amounts={"hugepages-2M": "0"})
    await add_hostile_pod(world, good, "wide", containers=257)
    try:
        victim = await world.add_pod(good, "victim", "1")

        async def settled() -> bool:
            spec = await world.spec(good)
            placed = {one["pod"] for one in spec.get("containers", ())}
            reasons = refusals(spec)
            return placed == {victim.pod, world.name("pages")} and reasons == {
                world.name("mirror"): "InvalidPod",
                world.name("wide"): "InvalidPod",
            }

        await until(settled, operator.log)

        async def stalled() -> bool:
            status = await world.policy_status(policy)
            return [(one["node"], one["reason"]) for one in status.get("stalled", ())] == [
                (bad, "InvalidAssignment")
            ]

        await until(stalled, operator.log)
    finally:
        await remove(world, "mirror", "pages", "wide")
    assert "Traceback" not in operator.log.read_text()
