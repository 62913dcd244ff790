"""Situations of an operator and its nodes on a real API server, and what tests wait for in them."""

from pathlib import Path

from numapin_client.resources import Json
from support.real.operators.operator_process import until
from support.real.operators.operator_world import RealWorld


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
