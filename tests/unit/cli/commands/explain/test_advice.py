"""`numapin explain`: what would help a pod that lacks its own CPUs."""

from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from support.fakes.worlds.asked_cluster import Capture, explained
from support.fakes.worlds.described_cluster import World, cluster, living_cluster
from support.values.operator import Body, pod_body
from support.values.placement import machine

LATER = "2026-01-02T00:00:00Z"


def test_a_refusal_has_the_planner_s_numbers_who_is_in_the_way_and_what_helps(
    full: World, tmp_path: Path, capsys: Capture
) -> None:
    status, found = explained(tmp_path, capsys, full.dump(), "pod/b")
    assert status == 3
    (refusal,) = (
        one for one in full.cluster.assignments["node-1"]["spec"]["refused"] if one["pod"] == "b"
    )
    assert (found["reason"], found["why"]) == (refusal["reason"], [refusal["message"]])
    assert [(one["pod"], one["cpus"]) for one in found["inTheWay"]] == [("default/a", "2-5")]
    by_kind = {one["kind"]: one for one in found["remedies"]}
    assert by_kind["release"]["pods"] == ["default/a"]
    assert by_kind["release"]["moveTo"] == "node-2"
    assert by_kind["node"]["node"] == "node-2"
    assert (by_kind["size"]["container"], by_kind["size"]["cpus"]) == ("main", 2)
    assert found["tried"]["again"] == 1
    assert found["triedAll"]


async def test_each_advice_makes_the_operator_place_the_pod(
    tmp_path: Path, capsys: Capture
) -> None:
    """Each on a cluster of its own: the operator and its API server decide, not the command."""
    pods = pod_body("a", "4"), pod_body("b", "4", bound=LATER)
    _, found = explained(tmp_path, capsys, (await living_cluster(*pods)).dump(), "b")
    assert {one["kind"] for one in found["remedies"]} == {"release", "node", "size"}
    for remedy in found["remedies"]:
        world = await living_cluster(*pods)
        await _follow(world, remedy)
        node = remedy.get("node", "node-1")
        placed = {
            one["pod"]: one["cpus"] for one in world.cluster.assignments[node]["spec"]["containers"]
        }
        assert placed["b"] == remedy["gives"][0]["cpus"], remedy["text"]


async def _follow(world: World, remedy: dict[str, Any]) -> None:
    gone = ["b", *(name.partition("/")[2] for name in remedy.get("pods", ()))]
    for name in gone:
        world.drop_pod(name)
    await world.settle()
    again = pod_body(
        "b", str(remedy.get("cpus", 4)), node=remedy.get("node", "node-1"), bound=LATER
    )
    again["metadata"]["uid"] = "uid-again"
    world.add_pods([again])
    await world.settle()


async def test_an_edit_of_the_policy_that_is_advised_places_the_pod(
    tmp_path: Path, capsys: Capture
) -> None:
    spec = {"reserved": {"count": 2}, "options": {"fullPCPUsOnly": True}, "releaseDelay": "0s"}
    world = await living_cluster(pod_body("odd", "3"), spec=spec)
    status, found = explained(tmp_path, capsys, world.dump(), "odd")
    assert (status, found["reason"]) == (3, "SMTAlignmentError")
    sizes = [one["cpus"] for one in found["remedies"] if one["kind"] == "size"]
    assert sizes == [2, 4]
    (edit,) = (one for one in found["remedies"] if one["kind"] == "policy")
    assert edit["spec"] == {"options": {"fullPCPUsOnly": False}}
    rollout = {"rollout": {"maxConcurrent": "100%"}}
    world.cluster.put_policy(edit["policy"], spec | rollout | edit["spec"])
    await world.settle()
    (entry,) = world.cluster.assignments["node-1"]["spec"]["containers"]
    assert entry["cpus"] == edit["gives"][0]["cpus"]


async def test_a_refusal_that_has_become_pointless_says_so(tmp_path: Path, capsys: Capture) -> None:
    world = await living_cluster(pod_body("a", "4"), pod_body("b", "4", bound=LATER))
    world.drop_pod("a")
    await world.settle()
    _, found = explained(tmp_path, capsys, world.dump(), "b")
    assert [one["kind"] for one in found["remedies"]] == ["again"]


def test_pods_none_of_which_is_enough_alone_are_named_together(
    tmp_path: Path, capsys: Capture
) -> None:
    holders = [pod_body(f"h{number}", "2") for number in range(3)]
    world = cluster(*holders, pod_body("big", "4", bound=LATER))
    _, found = explained(tmp_path, capsys, world.dump(), "big")
    (release,) = (one for one in found["remedies"] if one["kind"] == "release")
    assert release["pods"] == ["default/h0", "default/h1"]


def whole_pod(cpus: int) -> Body:
    """A pod with resources of its own, of which one container takes 2 CPUs."""
    body = pod_body("whole", "2")
    amounts = {"cpu": str(cpus), "memory": "64Mi"}
    body["spec"]["resources"] = {"requests": amounts, "limits": amounts}
    body["spec"]["containers"].append({"name": "helper"})
    return body


async def test_a_pod_with_resources_of_its_own_that_leaves_nothing_for_others(
    tmp_path: Path, capsys: Capture
) -> None:
    spec = {"reserved": {"count": 2}, "topology": {"scope": "Pod", "policy": "BestEffort"}}
    world = await living_cluster(whole_pod(2), spec=spec)
    status, found = explained(tmp_path, capsys, world.dump(), "whole")
    (refusal,) = world.cluster.assignments["node-1"]["spec"]["refused"]
    assert (status, found["reason"]) == (3, "EmptyPodSharedPoolError")
    assert found["why"] == [refusal["message"]]
    (size,) = (one for one in found["remedies"] if one["kind"] == "size")
    assert size["podCPUs"] == 3
    world.drop_pod("whole")
    again = whole_pod(size["podCPUs"])
    again["metadata"]["uid"] = "uid-again"
    world.add_pods([again])
    await world.settle()
    placed = world.cluster.assignments["node-1"]["spec"]["containers"]
    assert {one["container"]: one["cpus"] for one in placed} == {
        one["container"]: one["cpus"] for one in size["gives"]
    }


def burstable(name: str, cpu: str) -> Body:
    body = pod_body(name, cpu)
    resources = body["spec"]["containers"][0]["resources"]
    resources["limits"] = {"memory": resources["limits"]["memory"]}
    return body


def sharing(**init: Any) -> Body:
    """A database of 4 CPUs behind an init container that a webhook has added."""
    body = burstable("mongo", "4")
    body["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "4"
    body["spec"]["initContainers"] = [{"name": "install"} | init]
    return body


@pytest.mark.parametrize(
    ("init", "text"),
    [
        ({}, "(install 0.1 and 64 MiB, main 4)"),
        ({"resources": {"requests": {"cpu": "250m", "memory": "1Mi"}}}, "(install 0.25, main 4)"),
    ],
)
def test_the_mildest_change_is_advised_beside_a_container_without_requests(
    tmp_path: Path, capsys: Capture, init: Body, text: str
) -> None:
    """No request of a fraction is rounded up where that is not needed; the policy helps too."""
    world = cluster(sharing(**init), spec={"reserved": {"count": 2}})
    status, found = explained(tmp_path, capsys, world.dump(), "mongo")
    assert status == 0
    size, edit = found["remedies"]
    assert size["text"] == f"create the pod with limits equal to requests {text}"
    assert edit["spec"] == {"pods": {"qosClasses": ["Guaranteed", "Burstable"]}}
    for remedy in found["remedies"]:
        assert remedy["gives"][0]["cpus"] == "2-5"


def test_only_containers_that_ask_for_a_cpu_are_rounded(tmp_path: Path, capsys: Capture) -> None:
    body = sharing(resources={"requests": {"cpu": "250m"}})
    for amounts in body["spec"]["containers"][0]["resources"].values():
        amounts["cpu"] = "1500m"
    _, found = explained(tmp_path, capsys, cluster(body).dump(), "mongo")
    (size,) = (one for one in found["remedies"] if one["kind"] == "size")
    assert size["text"].endswith("whole CPUs (install 0.25 and 64 MiB, main 2)")
    assert size["cpus"] == {"install": 0.25, "main": 2}


def test_a_pod_that_asks_for_no_cpu_gets_no_advice(tmp_path: Path, capsys: Capture) -> None:
    body = pod_body("idle")
    body["spec"]["containers"][0]["resources"] = {}
    _, found = explained(tmp_path, capsys, cluster(body).dump(), "idle")
    assert found["remedies"] == []


async def test_scope_pod_is_tried(tmp_path: Path, capsys: Capture) -> None:
    """Of each container CPUs and memory need another number of NUMA nodes, of the pod the same."""
    spec = {
        "reserved": {"cpus": "0"},
        "topology": {"policy": "Restricted"},
        "memory": {"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Mi"}]},
    }
    body = pod_body("p", "5", memory="1Gi")
    body["spec"]["containers"].append(
        pod_body("other", "1", memory="5Gi")["spec"]["containers"][0] | {"name": "cache"}
    )
    topology = machine(8, 2, 2, memory_bytes=4 << 30)
    world = await living_cluster(body, spec=spec, topology=topology)
    _, found = explained(tmp_path, capsys, world.dump(), "p")
    assert found["reason"] == "TopologyAffinityError"
    assert "5 CPUs need 2 NUMA nodes" in found["why"][0]
    edits = [one["spec"] for one in found["remedies"] if one["kind"] == "policy"]
    assert {"topology": {"scope": "Pod"}} in edits
    spec["topology"] = {"policy": "Restricted", "scope": "Pod"}
    world.cluster.put_policy("web", spec | {"rollout": {"maxConcurrent": "100%"}})
    await world.settle()
    placed = world.cluster.assignments["node-1"]["spec"]["containers"]
    assert sum(len(CpuSet.parse(one["cpus"])) for one in placed) == 6
