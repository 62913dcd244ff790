"""Nodes that are paused and released by the command, with a real operator and API server."""

import asyncio

from numapin_cli.main import main
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import holds, plan, until_gone
from support.real.operators.operator_world import RealWorld

EDITED = {"reserved": {"count": 2}, "topology": {"policy": "BestEffort"}, "releaseDelay": "0s"}


async def numapin(world: RealWorld, *words: str) -> int:
    """Run a command with the rights of an administrator."""
    flags = ("--kubeconfig", str(world.plane.kubeconfig))
    return await asyncio.to_thread(main, [*words, *flags])


async def test_nothing_changes_on_a_paused_node(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    first = await world.add_pod(node, "a")
    await until(lambda: holds(world, node, {"a": "2-3"}), operator.log)
    await world.enforce(node, first.uid)
    assert await numapin(world, "pause", node) == 0
    before = await world.assignment(node)
    await world.put_policy(EDITED, "policy")
    second = await world.add_pod(node, "b")

    async def told() -> bool:
        return any(
            "until its node is paused no more" in one for one in await world.event_notes(second)
        )

    await until(told, operator.log)
    assert (await world.assignment(node))["metadata"] == before["metadata"]
    assert await numapin(world, "resume", node) == 0
    await until(lambda: holds(world, node, {"a": "2-3", "b": "4-5"}), operator.log)


async def test_a_released_node_is_under_no_policy_until_it_is_resumed(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world, {"reserved": {"count": 2}, "releaseDelay": "0s"})
    kubectl = world.plane.kubectl
    kubectl("annotate", "node", node, "numapin.io/node-mode=Released")

    async def is_released() -> bool:
        return (await world.spec(node)).get("mode") == "None"

    await until(is_released, operator.log)
    await world.enforce(node)
    await until_gone(world, node, operator.log)
    assert await numapin(world, "resume", node) == 0
    await until(lambda: world.spec(node), operator.log)
