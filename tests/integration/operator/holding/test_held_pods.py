"""Pods that wait until a node has a place for them, on a real API server."""

import asyncio
import random
from functools import partial
from pathlib import Path
from time import monotonic

import pytest

from numapin_api import names
from numapin_api.cpuset import CpuSet
from numapin_client.client import connect
from numapin_client.errors import ForbiddenError
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODES, PODS, Json, Key
from support.real.operators.held_pods import HOLD, HeldScene
from support.real.operators.operator_process import OperatorProcess, until
from support.real.operators.operator_scenes import without_patching_pods
from support.real.operators.operator_world import RealWorld

GATED: Json = {"schedulingGates": [{"name": names.HOLD_GATE}]}
OTHER_AFFINITY: Json = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "mark", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "none", "operator": "Exists"}]},
            ]
        }
    }
}


async def test_a_pod_has_its_place_before_it_can_be_bound(
    world: RealWorld, scene: HeldScene, operator: OperatorProcess
) -> None:
    node = await scene.node()
    await until(partial(is_gated_by_admission, scene))
    await scene.add("a", "4", affinity=OTHER_AFFINITY)
    await until(lambda: scene.is_open("a"), operator.log)
    assert await scene.lines(node) == {"a": "2-5"}
    assert await scene.node_of("a") == node
    await scene.add("b", "4")
    await until(lambda: scene.text("b"), operator.log)
    assert await scene.is_gated("b")
    assert f"NotEnoughCPUs on {node}" in await scene.text("b")
    await scene.bind("a", node)
    await scene.delete("a")
    await world.enforce(node)
    await until(lambda: scene.is_open("b"), operator.log)
    assert await scene.lines(node) == {"b": "2-5"}
    assert await scene.text("b") == ""


async def is_gated_by_admission(scene: HeldScene) -> bool:
    """Whether the API server has begun to set gates, which takes a moment after the policy."""
    await scene.add("probe", "100m")
    gated = names.HOLD_GATE in str(await scene.pod("probe"))
    await scene.delete("probe")
    return gated


async def test_an_operator_that_dies_before_it_opens_a_gate_loses_nothing(
    world: RealWorld, operator: OperatorProcess
) -> None:
    """The gate is in the pod's template, as on an older API server, and the right comes late."""
    scene = HeldScene(world)
    await scene.opt_in()
    nodes = [await scene.node(), await scene.another_node()]
    async with without_patching_pods(world):
        await scene.add("a", "4", **GATED)
        await until(lambda: lines_of(scene, nodes), operator.log)
        await until(lambda: "apply manifests/components/holding" in operator.log.read_text())
        before = await lines_of(scene, nodes)
        await operator.kill()
        await scene.add("older", "4", priority=0, **GATED)
        await operator.start()
        await until(lambda: has_places(scene, nodes, 2), operator.log)
        await operator.kill()
        assert await scene.is_gated("a")
    await operator.start()
    await until(lambda: scene.is_open("a"), operator.log)
    assert {(await scene.node_of("a"), "a", "2-5")} == before
    await until(lambda: scene.is_open("older"), operator.log)
    assert_apart(await lines_of(scene, nodes))


async def lines_of(scene: HeldScene, nodes: list[str]) -> set[tuple[str, str, str]]:
    return {(node, *one) for node in nodes for one in (await scene.lines(node)).items()}


async def has_places(scene: HeldScene, nodes: list[str], count: int) -> bool:
    return len(await lines_of(scene, nodes)) == count


def assert_apart(found: set[tuple[str, str, str]]) -> None:
    """No pod has two places, and no CPU of a node two pods."""
    assert len({pod for _, pod, _ in found}) == len(found), found
    for node in {node for node, _, _ in found}:
        sets = [CpuSet.parse(cpus) for at, _, cpus in found if at == node]
        assert len(CpuSet.union(sets)) == sum(map(len, sets)), found


async def test_an_operator_killed_again_and_again_gives_each_pod_one_place(
    world: RealWorld, scene: HeldScene, operator: OperatorProcess
) -> None:
    nodes = [await scene.node(), await scene.another_node()]
    chance = random.Random(7)
    await operator.kill()
    pods = [f"p{number}" for number in range(8)]
    for pod in pods:
        await scene.add(pod, "2", **GATED)
    for _ in range(5):
        await operator.start()
        await asyncio.sleep(chance.uniform(0.0, 0.4))
        await operator.kill()
        assert_apart(await lines_of(scene, nodes))
    await operator.start()
    await until(lambda: opened(scene, pods, 6), operator.log)
    await until(lambda: told(scene, pods, 2), operator.log)
    found = await lines_of(scene, nodes)
    assert_apart(found)
    for node, pod, _ in found:
        assert await scene.node_of(pod) == node
    assert len(found) == 6, "6 CPUs of each node, 2 of each pod"


async def opened(scene: HeldScene, pods: list[str], count: int) -> bool:
    return sum([await scene.is_open(pod) for pod in pods]) == count


async def told(scene: HeldScene, pods: list[str], count: int) -> bool:
    return sum([bool(await scene.text(pod)) for pod in pods]) == count


async def test_a_place_ends_with_its_pod_and_with_its_node(
    world: RealWorld, scene: HeldScene, operator: OperatorProcess
) -> None:
    node = await scene.node()
    await scene.add("a", "4", **GATED)
    await until(lambda: scene.is_open("a"), operator.log)
    await world.enforce(node)
    await scene.delete("a")
    await until(partial(has_places, scene, [node], 0), operator.log)
    await scene.add("b", "4", **GATED)
    await until(lambda: scene.is_open("b"), operator.log)
    other = await scene.another_node()
    await scene.bind("b", other)
    await world.enforce(node)
    await until(partial(has_lines, scene, node, {}), operator.log)
    await world.admin.delete(NODES, Key(node))
    await scene.add("c", "2", **GATED)
    await until(lambda: scene.is_open("c"), operator.log)
    assert await scene.node_of("c") == other


async def has_lines(scene: HeldScene, node: str, expected: dict[str, str]) -> bool:
    return await scene.lines(node) == expected


async def test_a_gate_is_opened_by_hand_as_the_documentation_says(
    world: RealWorld, scene: HeldScene, operator: OperatorProcess
) -> None:
    node = await scene.node()
    await scene.add("big", "7", **GATED)
    await until(lambda: scene.text("big"), operator.log)
    page = (Path(__file__).parents[4] / "docs" / "holding.md").read_text()
    [line] = [one for one in page.splitlines() if one.startswith("$ kubectl patch pod")]
    command = line.removeprefix("$ kubectl ").replace("NAMESPACE", scene.namespace)
    arguments = command.replace("NAME", "big").split(" -p ")
    patch = arguments[1].strip("'")
    kubectl = world.plane.kubectl
    await asyncio.to_thread(kubectl, *arguments[0].split(), "-p", patch)
    assert await scene.is_open("big")
    await scene.bind("big", node)
    await scene.add("small", "1", **GATED)
    await until(lambda: scene.is_open("small"), operator.log)
    assert await scene.lines(node) == {"small": "2"}, "the big one shares, as with Share"


@pytest.mark.parametrize("labels", [{}, {names.HOLD_LABEL: "no"}], ids=["none", "another value"])
async def test_a_gate_that_nothing_holds_is_opened_at_once(
    world: RealWorld, operator: OperatorProcess, labels: dict[str, str]
) -> None:
    scene = HeldScene(world)
    await scene.opt_in(labels)
    await scene.node()
    began = monotonic()
    await scene.add("a", "4", **GATED)
    await until(lambda: scene.is_open("a"), operator.log)
    assert await scene.node_of("a") == ""
    assert monotonic() - began < 60


async def test_the_operator_may_open_a_gate_and_change_nothing_else(
    world: RealWorld, scene: HeldScene
) -> None:
    await scene.add("a", "1", **GATED)
    await scene.add(
        "b", "1", schedulingGates=[{"name": "other.io/gate"}, *GATED["schedulingGates"]]
    )
    async with connect(kubeconfig_login(str(world.operator_kubeconfig))) as operator:

        async def patch(name: str, spec: Json, **metadata: Json) -> None:
            body = {"metadata": metadata, "spec": spec}
            await operator.merge_patch(
                PODS, Key(name, scene.namespace), body, field_manager="numapin-operator"
            )

        containers = [{**(await scene.pod("a"))["spec"]["containers"][0], "image": "evil"}]
        toleration = {"key": "k", "operator": "Exists"}
        for denied in (
            {"containers": containers},
            {"schedulingGates": None, "containers": containers},
            {"schedulingGates": None, "tolerations": [toleration]},
            {"schedulingGates": None, "nodeSelector": {"a": "b"}},
            {"schedulingGates": None, "activeDeadlineSeconds": 1},
        ):
            with pytest.raises(ForbiddenError):
                await patch("a", denied)
        with pytest.raises(ForbiddenError):
            await patch("b", {"schedulingGates": None})
        with pytest.raises(ForbiddenError):
            await patch("a", {"schedulingGates": None}, labels={"a": "b"})
        await patch("a", {"schedulingGates": None})
        await patch("b", {"schedulingGates": [{"name": "other.io/gate"}]})
    assert await scene.is_open("a")
    assert await scene.is_open("b")


async def test_nobody_watches_unbound_pods_before_a_policy_holds_them(
    world: RealWorld, operator: OperatorProcess
) -> None:
    scene = HeldScene(world)
    await scene.opt_in()
    node = await scene.node({"onUnsatisfiable": "Share"})
    await scene.add("a", "2", **GATED)
    await world.add_pod(node, "bound")
    await until(lambda: world.held(node), operator.log)
    assert await scene.is_gated("a")
    await world.put_policy(HOLD, "policy")
    await until(lambda: scene.is_open("a"), operator.log)
    assert await scene.node_of("a") == node
