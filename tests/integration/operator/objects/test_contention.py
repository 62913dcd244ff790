"""Somebody undoes what the operator writes, on a real API server: it does not write without end."""

import asyncio
from contextlib import suppress

from numapin_client.errors import ConflictError
from numapin_client.resources import NODE_ASSIGNMENTS
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import RealWorld
from support.real.waiting import running

TIMES = 4


async def undo(world: RealWorld, node: str, *, times: int) -> None:
    """Change the mode each time that the operator has put it right."""
    while times:
        body = await world.assignment(node)
        if body["spec"]["mode"] != "Static":
            await asyncio.sleep(0.01)
            continue
        body["spec"]["mode"] = "Audit"
        with suppress(ConflictError):
            await world.admin.update(NODE_ASSIGNMENTS, body)
            times -= 1


async def test_a_node_that_is_fought_over_is_told_and_served_again_when_that_is_over(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = (await world.add_node()).name
    policy = await world.put_policy({"reserved": {"count": 2}})
    await until(lambda: world.spec(node), operator.log)
    await world.enforce(node)

    async def reasons() -> list[str]:
        status = await world.policy_status(policy)
        return [one["reason"] for one in status.get("stalled", ()) if one["node"] == node]

    async def is_contested() -> bool:
        return await reasons() == ["AssignmentContested"]

    async with running(undo(world, node, times=TIMES)) as undoing:
        await until(is_contested, operator.log)
        await undoing
    await world.enforce(node)

    async def is_served() -> bool:
        spec = await world.spec(node)
        return bool(spec["mode"] == "Static")

    await until(is_served, operator.log)
    pod = await world.add_pod(node, "after", "2")
    await until(lambda: world.held(node), operator.log)
    await world.delete_pod(pod)
