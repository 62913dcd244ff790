"""Refused pods say so for as long as they are refused, on a real API server."""

from pathlib import Path

import pytest

from numapin_api import names
from numapin_client.client import connect
from numapin_client.errors import ForbiddenError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import PODS, Json, Key
from numapin_operator.cluster import PodEvent
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import holds, plan, without_patching_pods
from support.real.operators.operator_world import RealWorld


async def told(world: RealWorld, pod: PodEvent) -> str:
    """What a pod's annotation says; empty if it has none."""
    found = await world.admin.get(PODS, Key(pod.pod, pod.namespace))
    annotations = found["metadata"].get("annotations") or {}
    return str(annotations.get(names.REFUSED_ANNOTATION) or "")


async def test_a_refused_pod_is_told_until_it_is_placed_whatever_is_written_there(
    world: RealWorld, operator: OperatorProcess
) -> None:
    node = await plan(world)
    placed, refused = await world.add_pod(node, "a", "4"), await world.add_pod(node, "b", "4")
    await until(lambda: told(world, refused), operator.log)
    said = await told(world, refused)
    assert said.startswith("NotEnoughCPUs: container main: wanted 4 CPUs, 2 free: 6-7")
    assert await told(world, placed) == ""

    async def says(text: str) -> bool:
        return await told(world, refused) == text

    for text in ("all is well", None):
        patch: Json = {"metadata": {"annotations": {names.REFUSED_ANNOTATION: text}}}
        await world.admin.merge_patch(PODS, Key(refused.pod, refused.namespace), patch)
        await until(lambda: says(said), operator.log)
    await operator.kill()
    await operator.start()
    await world.delete_pod(placed)
    await until(lambda: holds(world, node, {}), operator.log)
    assert await says(said), "a refusal stands while the pod lives"
    await world.put_policy({"reserved": {"count": 1}}, "policy")

    async def is_placed() -> bool:
        return {*await world.held(node)} == {"b"}

    await until(is_placed, operator.log)
    await until(lambda: says(""), operator.log)


async def test_the_guard_lets_the_operator_write_nothing_else(world: RealWorld) -> None:
    node = (await world.add_node("node")).name
    pod = await world.add_pod(node, "a")
    key = Key(pod.pod, pod.namespace)
    others: list[Json] = [
        {"metadata": {"annotations": {"numapin.io/other": "yes"}}},
        {"metadata": {"labels": {"mine": "yes"}}},
        {"spec": {"activeDeadlineSeconds": 5}},
    ]
    async with connect(kubeconfig_login(str(world.operator_kubeconfig))) as client:
        for patch in others:
            with pytest.raises(ForbiddenError, match="the operator of numapin may"):
                await client.merge_patch(PODS, key, patch)
    await world.cluster.annotate(key, pod.uid, "NotEnoughCPUs: x", names.REFUSED_ANNOTATION)
    assert await told(world, pod) == "NotEnoughCPUs: x"


async def test_without_the_right_pods_are_placed_and_told_when_it_is_there(
    world: RealWorld, tmp_path: Path
) -> None:
    operator = OperatorProcess(world.operator_kubeconfig, tmp_path, hasty=True)
    try:
        async with without_patching_pods(world):
            await operator.start()
            node = await plan(world)
            await world.add_pod(node, "a", "4")
            refused = await world.add_pod(node, "b", "4")
            await until(lambda: holds(world, node, {"a": "2-5"}), operator.log)
            missing = "pods are not told that they were refused"
            await until(lambda: missing in operator.log.read_text(), operator.log)
            assert await told(world, refused) == ""
        await until(lambda: told(world, refused), operator.log)
        assert operator.log.read_text().count(missing) == 1
    finally:
        assert await operator.stop() == 0, operator.log.read_text()[-4000:]
