"""A NodeAssignment without owners of fields, and others who apply or edit it."""

import asyncio
import json
from functools import partial

from numapin_client.resources import Json
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView
from support.fakes.cluster_contract import PLANNED, RELEASED, WAITING
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import plan
from support.real.operators.operator_world import RealWorld
from support.values.operator import enforcer_status


async def kubectl(world: RealWorld, *arguments: str, text: str = "") -> str:
    return await asyncio.to_thread(world.plane.kubectl, *arguments, text=text)


async def written(world: RealWorld) -> tuple[NodeView, AssignmentView]:
    """An assignment that was created, reported on and replaced."""
    node = await world.add_node()
    made = await world.cluster.create_assignment(node, WAITING)
    await world.report(node.name, enforcer_status(1))
    before = await world.cluster.read_assignment(node.name, made)
    assert before is not None
    return node, await world.cluster.replace_spec(before, node, PLANNED)


async def owners(world: RealWorld, node: str) -> dict[tuple[str, str], Json]:
    """Who owns fields by kubectl, and how."""
    shown = await kubectl(world, "get", "nodeasg", node, "-o", "json", "--show-managed-fields")
    managers = json.loads(shown)["metadata"].get("managedFields", ())
    return {(one["manager"], one["operation"]): one["fieldsV1"] for one in managers}


async def apply(world: RealWorld, node: str, labels: Json) -> None:
    """Apply labels on the server's side, as a team does."""
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "NodeAssignment"}
    body = kind | {"metadata": {"name": node, "labels": labels}}
    flags = ("--server-side", "--field-manager=team", "-f", "-")
    await kubectl(world, "apply", *flags, text=json.dumps(body))


async def test_no_write_brings_owners_back(world: RealWorld) -> None:
    node, replaced = await written(world)
    assert await owners(world, node.name) == {}
    await world.report(node.name, enforcer_status(2, running=["uid-a"]))
    await kubectl(world, "label", "nodeasg", node.name, "rack=r1")
    await kubectl(world, "annotate", "nodeasg", node.name, "note=mine")
    assert await owners(world, node.name) == {}
    before = await world.cluster.read_assignment(node.name, replaced)
    assert before is not None
    assert before.status.running == ("uid-a",)
    after = await world.cluster.replace_spec(before, node, RELEASED)
    assert (after.spec, after.generation) == (RELEASED, 3)
    assert (after.metadata["labels"], after.metadata["annotations"]) == (
        {"rack": "r1"},
        {"note": "mine"},
    )
    assert await owners(world, node.name) == {}


async def test_kubectl_edit_and_apply_still_work(world: RealWorld) -> None:
    node, _ = await written(world)
    shown = await kubectl(world, "get", "nodeasg", node.name, "-o", "json")
    edited = json.loads(shown)
    edited["spec"]["policy"]["generation"] = 7
    await kubectl(world, "replace", "-f", "-", text=json.dumps(edited))
    assert (await world.spec(node.name))["policy"]["generation"] == 7
    kind = {key: edited[key] for key in ("apiVersion", "kind")}
    metadata = {"name": node.name, "labels": {"rack": "r1"}}
    applied = kind | {"metadata": metadata, "spec": edited["spec"]}
    await kubectl(world, "apply", "-f", "-", text=json.dumps(applied))
    assert (await world.assignment(node.name))["metadata"]["labels"] == {"rack": "r1"}
    assert await owners(world, node.name) == {}


async def test_who_applies_on_the_servers_side_keeps_what_it_owns(world: RealWorld) -> None:
    node, _ = await written(world)
    await apply(world, node.name, {"rack": "r1", "row": "4"})
    for number, spec in enumerate((RELEASED, PLANNED)):
        before = await world.cluster.read_assignment(node.name)
        assert before is not None
        after = await world.cluster.replace_spec(before, node, spec)
        assert after.spec == spec
        await world.report(node.name, enforcer_status(3 + number))
    fields = (await owners(world, node.name))["team", "Apply"]
    assert fields == {"f:metadata": {"f:labels": {"f:rack": {}, "f:row": {}}}}
    await apply(world, node.name, {"rack": "r2"})
    assert (await world.assignment(node.name))["metadata"]["labels"] == {"rack": "r2"}
    assert (await world.spec(node.name)) == PLANNED.to_wire()


async def test_a_placed_pod_costs_one_write_of_the_spec(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    for name, cpus in (("a", "2-3"), ("b", "4-5")):
        before = await world.assignment(node)
        await world.add_pod(node, name)
        await until(partial(_has, world, node, name, cpus), operator.log)
        await asyncio.sleep(1)
        after = await world.assignment(node)
        assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
        assert await owners(world, node) == {}


async def _has(world: RealWorld, node: str, name: str, cpus: str) -> bool:
    return (await world.held(node)).get(name) == cpus
