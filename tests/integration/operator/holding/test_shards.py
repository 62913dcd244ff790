"""Several shards hold no pods, and say so, on a real API server."""

import asyncio
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.errors import NotFoundError
from numapin_client.resources import LEASES, Key
from numapin_operator.shards.division import lease_name, shard_of
from support.real.operators.held_pods import HOLD, HeldScene
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_world import COMPONENTS, RealWorld

SHARDS = 2


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_with_shards_the_policy_is_stalled_and_gates_are_opened(
    world: RealWorld, scene: HeldScene, tmp_path: Path, shard: int
) -> None:
    """The node is of one shard or the other; only one of them opens gates."""
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path, hasty=True)
    rights = f"--filename={COMPONENTS / 'shards' / 'rbac.yaml'}"
    await asyncio.to_thread(world.plane.kubectl, "apply", rights)
    try:
        await operator.start("--leader-elect", f"--shards={SHARDS}")
        nodes = (f"node-{number}" for number in count())
        await world.add_node(next(n for n in nodes if shard_of(world.name(n), SHARDS) == shard))
        policy = await world.put_policy(HOLD, "policy")
        await scene.add("a", "2", schedulingGates=[{"name": names.HOLD_GATE}])
        await until(lambda: scene.is_open("a"), operator.log)
        assert await scene.node_of("a") == ""
        await until(lambda: stalled(world, policy), operator.log)
        assert await stalled(world, policy) == "UnsupportedField"
    finally:
        await operator.kill()
        await asyncio.to_thread(world.plane.kubectl, "delete", rights)
        for number in range(SHARDS):
            with suppress(NotFoundError):
                await world.admin.delete(LEASES, Key(lease_name(number), names.NAMESPACE))


async def stalled(world: RealWorld, policy: str) -> str:
    """Why a policy is Stalled; empty if it is not."""
    conditions = (await world.policy_status(policy)).get("conditions") or ()
    return "".join(
        one["reason"] for one in conditions if (one["type"], one["status"]) == ("Stalled", "True")
    )
