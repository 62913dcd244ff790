"""What a policy says of caches, in the objects of a real API server."""

import asyncio

from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import plan
from support.real.operators.operator_world import RealWorld

EXCLUSIVE = {"l3Percent": 40, "memoryBandwidthPercent": 100}
QUIET_SECONDS = 3.0


async def test_an_assignment_has_the_shares_and_is_written_once(
    world: RealWorld, operator: OperatorProcess
) -> None:
    spec = {"reserved": {"count": 2}, "cache": {"classes": {"exclusive": {"l3Percent": 40}}}}
    node = await plan(world, spec)
    classes = {"exclusive": EXCLUSIVE, "others": {"memoryBandwidthPercent": 100}}
    assert (await world.spec(node))["cache"] == {"classes": classes}

    async def rests() -> bool:
        before = await world.assignment(node)
        await asyncio.sleep(QUIET_SECONDS)
        after = await world.assignment(node)
        return bool(after["metadata"]["generation"] == before["metadata"]["generation"])

    await until(rests, operator.log)
    await world.put_policy({"reserved": {"count": 2}}, "policy")

    async def left_alone() -> bool:
        return "cache" not in await world.spec(node)

    await until(left_alone, operator.log)
