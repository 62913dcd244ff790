"""`numapin explain` of what waits for room: a resize, and a pod for which containers are moved."""

from pathlib import Path
from typing import Any

from numapin_cli.main import main
from support.fakes.worlds.asked_cluster import Capture, explained
from support.fakes.worlds.described_cluster import World, living_cluster
from support.values.operator import Body, pod_body
from support.values.placement import machine

ALIGNED = {
    "reserved": {"cpus": "0-1"},
    "topology": {"policy": "SingleNUMANode"},
    "rollout": {"maxConcurrent": "100%"},
}
DYNAMIC = {"mode": "Dynamic", "dynamic": {"notice": "0s"}}


def cpus(world: World, node: str = "node-1") -> dict[str, str]:
    containers = world.cluster.assignments[node]["spec"]["containers"]
    return {one["pod"]: one["cpus"] for one in containers}


def resized(name: str, cpu: str) -> Body:
    """A pod whose resize the kubelet has granted."""
    body = pod_body(name, cpu)
    body["metadata"]["generation"] = 2
    amounts = body["spec"]["containers"][0]["resources"]["requests"]
    body["status"] = {"containerStatuses": [{"name": "main", "allocatedResources": amounts}]}
    return body


async def waiting() -> World:
    """6 CPUs to give: a has 2 and wants 4, b has 3."""
    world = await living_cluster(pod_body("a", "2"), pod_body("b", "3"))
    world.change_pod(resized("a", "4"))
    await world.settle()
    return world


async def test_a_resize_that_waits_names_the_numbers_who_is_in_the_way_and_what_helps(
    tmp_path: Path, capsys: Capture
) -> None:
    world = await waiting()
    (refusal,) = world.cluster.assignments["node-1"]["spec"]["refusedResizes"]
    status, found = explained(tmp_path, capsys, world.dump(), "a")
    assert (status, found["reason"]) == (3, "NotEnoughCPUs")
    assert found["verdict"] == "keeps what it has; its resize waits"
    assert found["why"][0] == refusal["message"]
    assert [one["pod"] for one in found["inTheWay"]] == ["default/b"]
    assert {one["kind"] for one in found["remedies"]} == {"release", "size", "node", "policy"}
    (release,) = (one for one in found["remedies"] if one["kind"] == "release")
    assert release["text"].endswith("then the resize takes effect")
    (size,) = (one for one in found["remedies"] if one["kind"] == "size")
    assert size["text"] == "resize the pod to 3 CPUs for main instead of 4"
    _, node = explained(tmp_path, capsys, world.dump(), "node/node-1")
    assert f"its resize waits, NotEnoughCPUs: {refusal['message']}" in [
        one["text"] for one in node["facts"]
    ]


async def test_each_advice_has_the_resize_take_effect(tmp_path: Path, capsys: Capture) -> None:
    _, found = explained(tmp_path, capsys, (await waiting()).dump(), "a")
    for remedy in found["remedies"]:
        world, node = await waiting(), remedy.get("node", "node-1")
        await follow(world, remedy)
        assert cpus(world, node)["a"] == remedy["gives"][0]["cpus"], remedy["text"]
        assert not world.cluster.assignments[node]["spec"].get("refusedResizes")


async def follow(world: World, remedy: dict[str, Any]) -> None:
    match remedy["kind"]:
        case "release":
            for name in remedy["pods"]:
                world.drop_pod(name.removeprefix("default/"))
        case "size":
            world.change_pod(resized("a", str(remedy["cpus"])))
        case "policy":
            spec = {"reserved": {"count": 2}, "rollout": {"maxConcurrent": "100%"}}
            world.cluster.put_policy("web", spec | remedy["spec"])
        case "node":
            world.drop_pod("a")
            again = pod_body("a", "4", node=remedy["node"])
            again["metadata"]["uid"] = "uid-again"
            world.add_pods([again])
    await world.settle()


async def scattered(spec: Body, *pods: Body) -> World:
    """Two NUMA nodes of 6 and 8 CPUs to give; a has 4 of the first, b 4 of the second one."""
    topology = machine(16, numa_nodes=2)
    has = pod_body("a", "4"), pod_body("b", "4")
    return await living_cluster(*has, *pods, spec=ALIGNED | spec, topology=topology)


async def moved(world: World) -> None:
    """Let every move come to its end."""
    for _ in range(3):
        await world.settle()
        await world.operator.clock.advance(2)


async def test_a_pod_for_which_containers_are_moved_says_which_and_what_it_gets(
    tmp_path: Path, capsys: Capture
) -> None:
    world = await scattered(DYNAMIC)
    late = pod_body("big", "6", bound="2026-01-02T00:00:00Z")
    world.pods.append(late)
    status, found = explained(tmp_path, capsys, world.dump(), "big")
    assert (status, found["reason"]) == (3, "WaitingForMoves")
    move = "moves default/a main from CPUs 2-5 to 12-15 so that default/big"
    assert any(one.startswith(f"the operator {move}") for one in found["why"]), found["why"]
    _, node = explained(tmp_path, capsys, world.dump(), "node/node-1")
    assert any(one["text"].startswith(move) for one in node["facts"])
    world.pods.remove(late)
    world.add_pods([late])
    await world.operator.work_until_idle()
    _, found = explained(tmp_path, capsys, world.dump(), "big")
    assert "of default/a, which is moved" in found["why"][0]
    _, node = explained(tmp_path, capsys, world.dump(), "node/node-1")
    assert "it is being moved off CPUs 2-5" in [one["text"] for one in node["facts"]]
    assert main(["get", "node-1", "--cluster", str(tmp_path / "now.json")]) == 0
    assert "default/a main  off CPUs 2-5 for default/big" in capsys.readouterr().out
    await moved(world)
    assert cpus(world) == {"a": "12-15", "b": "8-11", "big": "2-7"}


async def test_mode_dynamic_is_advised_with_the_moves_and_following_it_places_the_pod(
    tmp_path: Path, capsys: Capture
) -> None:
    world = await scattered({}, pod_body("big", "6", bound="2026-01-02T00:00:00Z"))
    status, found = explained(tmp_path, capsys, world.dump(), "big")
    assert (status, found["reason"]) == (3, "TopologyAffinityError")
    edits = [one for one in found["remedies"] if one["kind"] == "policy"]
    (edit,) = (one for one in edits if "mode" in one["spec"])
    assert edit["moves"][0].startswith("moves default/a main from CPUs 2-5 to 12-15")
    world.cluster.put_policy(edit["policy"], ALIGNED | edit["spec"])
    await moved(world)
    assert cpus(world)["big"] == edit["gives"][0]["cpus"] == "2-7"


async def test_a_pod_that_is_not_bound_says_what_would_be_moved_for_it(
    tmp_path: Path, capsys: Capture
) -> None:
    world = await scattered(DYNAMIC, pod_body("big", "6", node=""))
    file = tmp_path / "now.json"
    file.write_text(world.dump())
    assert main(["explain", "big", "--node", "node-1", "--cluster", str(file)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "it would get main: CPUs 2-7" in said
    assert "(the operator moves default/a main from CPUs 2-5 to 12-15 so that" in said
