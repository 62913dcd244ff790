"""Situations of an operator and its nodes on a real API server, and what tests wait for in them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from numapin_client.resources import Json
from support.real.operators.operator_process import until
from support.real.operators.operator_world import RealWorld

_BINDING = ("clusterrolebinding", "numapin-operator-refusals")


async def plan(world: RealWorld, spec: Json | None = None) -> str:
    """A node whose policy is in force; nothing is placed yet."""
    node = (await world.add_node()).name
    await world.put_policy(spec or {"reserved": {"count": 2}}, "policy")
    await until(lambda: world.spec(node))
    await world.enforce(node)
    await until(lambda: has(world, node, "pools"))
    await world.enforce(node)
    return node


async def has(world: RealWorld, node: str, field: str) -> bool:
    """Whether the spec of a node has a field."""
    return field in await world.spec(node)


async def holds(world: RealWorld, node: str, expected: dict[str, str]) -> bool:
    """Whether exactly these pods have CPUs on a node: each pod's by its name."""
    return await world.held(node) == expected


async def says(world: RealWorld, kind: str, status: str, reason: str, what: str = "policy") -> bool:
    """Whether a policy has a condition of this type, status and reason."""
    conditions = (await world.policy_status(world.name(what))).get("conditions", ())
    return (kind, status, reason) in {
        (one["type"], one["status"], one["reason"]) for one in conditions
    }


async def until_gone(world: RealWorld, node: str, log: Path) -> None:
    """Wait until a node has no NodeAssignment any more."""

    async def gone() -> bool:
        return not await world.assignment(node)

    await until(gone, log)


@asynccontextmanager
async def without_patching_pods(world: RealWorld) -> AsyncIterator[None]:
    """The operator may not patch pods."""
    kubectl = world.plane.kubectl
    body = kubectl.get(*_BINDING)
    await asyncio.to_thread(kubectl, "delete", *_BINDING)
    try:
        yield
    finally:
        body["metadata"] = {"name": _BINDING[1], "labels": body["metadata"].get("labels", {})}
        await asyncio.to_thread(kubectl, "create", "-f", "-", text=json.dumps(body))
