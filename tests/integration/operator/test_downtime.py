"""The operator as a process that ends, is killed or stopped, and starts again."""

import os
import signal

import pytest

from numapin_daemon.clock import SystemClock
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import has, holds, plan, says
from support.real.operators.operator_world import RealWorld


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_a_restart_changes_nothing(
    world: RealWorld, operator: OperatorProcess, end: str
) -> None:
    node = await plan(world)
    first, refused = await world.add_pod(node, "a"), await world.add_pod(node, "b", "6")
    waiting = await world.add_pod(node, "c", "8")
    for told in (refused, waiting):
        await until(lambda told=told: world.event_notes(told), operator.log)  # type: ignore[misc]
    await world.enforce(node, first.uid, refused.uid)
    before = await world.assignment(node)
    await (operator.kill() if end == "kill" else operator.stop())
    await operator.start()
    witness = await plan_another(world)
    await until(lambda: world.spec(witness), operator.log)
    after = await world.assignment(node)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    for told in (refused, waiting):
        assert len(await world.event_notes(told)) == 1, "one Event, not one for each start"


async def plan_another(world: RealWorld) -> str:
    """A second node of the same policy, to see that the operator is at work again."""
    return (await world.add_node("witness")).name


async def test_changes_during_a_downtime_are_applied_after_it(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    gone, kept = await world.add_pod(node, "gone"), await world.add_pod(node, "kept")
    await until(lambda: holds(world, node, {"gone": "2-3", "kept": "4-5"}), operator.log)
    await operator.kill()
    await world.delete_pod(gone)
    await world.add_pod(node, "late")
    await world.enforce(node, kept.uid)
    await operator.start()
    await until(lambda: holds(world, node, {"kept": "4-5", "late": "2-3"}), operator.log)


async def test_a_release_keeps_its_time_over_a_restart(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    policy = await world.put_policy({"reserved": {"count": 2}, "releaseDelay": "15s"}, "policy")
    await until(lambda: says(world, "Ready", "True", "InForce"), operator.log)
    await world.delete_policy(policy)
    await until(lambda: has(world, node, "releaseAt"), operator.log)
    announced = await world.assignment(node)
    await operator.kill()
    await operator.start()

    async def released() -> bool:
        return bool((await world.spec(node))["mode"] == "None")

    await until(released, operator.log)
    assert SystemClock().now_text() >= announced["spec"]["releaseAt"]
    generation = (await world.assignment(node))["metadata"]["generation"]
    assert generation == announced["metadata"]["generation"] + 1, "no other time was announced"


async def test_a_stalled_operator_does_not_win_over_another(
    world: RealWorld, operator: OperatorProcess
) -> None:
    """Stopped amid its work, it wakes up with a stale picture while another one has written."""
    node = await plan(world)
    os.kill(operator.pid, signal.SIGSTOP)
    try:
        rival = OperatorProcess(world.operator_kubeconfig, world.folder / node)
        await rival.start()
        await world.add_pod(node, "a")
        await until(lambda: holds(world, node, {"a": "2-3"}), rival.log)
        await rival.kill()
    finally:
        os.kill(operator.pid, signal.SIGCONT)
    await world.add_pod(node, "b")
    await until(lambda: holds(world, node, {"a": "2-3", "b": "4-5"}), operator.log)


async def test_sigterm_ends_it_cleanly(world: RealWorld, operator: OperatorProcess) -> None:
    await plan(world)
    assert await operator.stop() == 0
    assert operator.log.read_text().rstrip().endswith("stopped")
