"""`numapin explain`: how each kind of pod stands, what helps, and what a person gets wrong."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_cli.main import main
from numapin_client.resources import CPU_POLICIES, NODE_ASSIGNMENTS, NODES, PODS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill
from support.fakes.worlds.described_cluster import World, cluster, living_cluster, node_body
from support.values.operator import Body, condition, pod_body
from support.values.placement import machine

Capture = pytest.CaptureFixture[str]
LATER = "2026-01-02T00:00:00Z"


def explained(folder: Path, capsys: Capture, dump: str, *words: str) -> tuple[int, Body]:
    """The exit status and the only explanation, by a dump."""
    file = folder / "now.json"
    file.write_text(dump)
    status = main(["explain", *words, "--cluster", str(file), "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    return status, found


def drawn(folder: Path, capsys: Capture, dump: str, *words: str) -> str:
    (folder / "now.json").write_text(dump)
    main(["explain", *words, "--cluster", str(folder / "now.json")])
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def full() -> World:
    """node-1 has 6 CPUs to give: a has 4, b and d are refused; c is on node-2."""
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound=LATER),
        pod_body("d", "3", bound=LATER),
        pod_body("c", "2", node="node-2"),
        pod_body("pending", "4", node=""),
        pod_body("huge", "9", node=""),
        pod_body("half", "500m"),
    )


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


@pytest.mark.parametrize(
    ("pod", "spec", "status", "sentence", "kinds"),
    [
        (pod_body("p", "2"), {}, 3, "", []),
        (pod_body("p", "500m"), {}, 0, "requests 0.5 CPUs, no whole number", ["size"]),
        (
            burstable("p", "2"),
            {},
            0,
            "its QoS class is Burstable, and pods.qosClasses of policy web is Guaranteed",
            ["size", "policy"],
        ),
        (
            pod_body("p", "2"),
            {"pods": {"podSelector": {"matchLabels": {"team": "a"}}}},
            0,
            "policy web does not select it: pods.podSelector selects pods by their labels",
            [],
        ),
        (pod_body("p", "2"), {"mode": "None"}, 0, "the policy's mode is None", []),
        (pod_body("p", "2"), {"isolation": "Partition"}, 3, "isolation: Partition", []),
        (pod_body("p", "2"), {"nodeSelector": {"pool": "x"}}, 3, "no CpuPolicy selects", []),
        (pod_body("p", "9"), {"reserved": {"cpus": "77"}}, 3, "this machine has no", []),
    ],
    ids=["placed", "half", "burstable", "selector", "none", "unsupported", "no-policy", "stalled"],
)
def test_how_a_pod_stands_and_why(  # noqa: PLR0917
    tmp_path: Path,
    capsys: Capture,
    pod: Body,
    spec: Body,
    status: int,
    sentence: str,
    kinds: list[str],
) -> None:
    world = cluster(pod, spec={"reserved": {"count": 2}} | spec)
    code, found = explained(tmp_path, capsys, world.dump(), "pod/p")
    assert code == status
    assert sentence in " ".join(found["why"])
    assert [one["kind"] for one in found["remedies"]] == kinds


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


def test_a_placed_pod_is_well_once_the_kernel_has_it(tmp_path: Path, capsys: Capture) -> None:
    dump = json.loads(cluster(pod_body("p", "2")).dump())
    assert explained(tmp_path, capsys, json.dumps(dump), "p")[0] == 3
    for one in dump["items"]:
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-1":
            has = {"podUID": "uid-p", "container": "main", "cpus": "2-3", "exclusive": True}
            one["status"]["containers"] = [has]
    status, found = explained(tmp_path, capsys, json.dumps(dump), "p")
    assert (status, found["verdict"]) == (0, "has CPUs of its own")
    assert found["facts"] == [{"subject": "main", "text": "CPUs 2-3; in the kernel"}]


@pytest.mark.parametrize(("name", "status", "nodes"), [("pending", 0, ["node-2"]), ("huge", 3, [])])
def test_a_pod_that_is_not_bound_is_tried_on_every_node(  # noqa: PLR0917
    full: World, tmp_path: Path, capsys: Capture, name: str, status: int, nodes: list[str]
) -> None:
    code, found = explained(tmp_path, capsys, full.dump(), name)
    assert (code, found["verdict"]) == (status, "is bound to no node")
    assert [one["subject"] for one in found["facts"]] == ["node-2", "node-1"]
    assert [one["node"] for one in found["remedies"] if one["kind"] == "node"] == nodes


def test_a_pod_of_a_file_is_tried_without_being_in_the_cluster(
    full: World, tmp_path: Path, capsys: Capture
) -> None:
    body = pod_body("new", "2", node="")
    del body["metadata"]["uid"]
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(body))
    status, found = explained(tmp_path, capsys, full.dump(), "-f", str(file))
    assert (status, found["subject"]) == (0, "pod default/new")
    assert {one["node"] for one in found["remedies"]} == {"node-1", "node-2"}
    status, found = explained(tmp_path, capsys, full.dump(), "-f", str(file), "--node", "node-2")
    assert [one["subject"] for one in found["facts"]] == ["node-2"]


def test_a_pod_of_a_file_stands_beside_one_of_the_same_name(
    full: World, tmp_path: Path, capsys: Capture
) -> None:
    body = pod_body("a", "2", node="")
    del body["metadata"]["uid"]
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(body))
    status, found = explained(tmp_path, capsys, full.dump(), "-f", str(file), "--node", "node-1")
    assert (status, found["facts"][0]["text"]) == (0, "it would get main: CPUs 6-7")


def test_a_node_and_a_policy(full: World, tmp_path: Path, capsys: Capture) -> None:
    status, found = explained(tmp_path, capsys, full.dump(), "node/node-1")
    assert (status, found["verdict"], found["policy"]) == (0, "has the policy in force", "web")
    texts = {one["subject"]: one["text"] for one in found["facts"]}
    assert texts["exclusive"] == "4 CPUs of 1 container"
    assert texts["default/b"].startswith("refused, NotEnoughCPUs: wanted 4 CPUs, 2 free")
    dump = json.loads(full.dump())
    for one in dump["items"]:
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-1":
            why = [condition("Stalled", reason="KubeletStaticPolicy", message="set it to none")]
            one["status"]["conditions"] = why
        if one["kind"] == "CpuPolicy":
            ready = condition("Ready", reason="InForce", message="in force on 2 nodes")
            one["status"] = {"observedGeneration": 1, "nodesSelected": 2, "conditions": [ready]}
    status, found = explained(tmp_path, capsys, json.dumps(dump), "node", "node-1")
    assert (status, found["reason"]) == (3, "KubeletStaticPolicy")
    assert found["why"][0] == "set it to none"
    status, found = explained(tmp_path, capsys, json.dumps(dump), "policy/web")
    assert (status, found["verdict"]) == (0, "is in force")
    assert found["why"][0] == "in force on 2 nodes"
    world = cluster(spec={"nodeSelector": {"pool": "x"}})
    _, found = explained(tmp_path, capsys, world.dump(), "node/node-2")
    assert found["verdict"] == "is governed by no policy"
    assert found["facts"][0]["text"] == "its nodeSelector needs pool=x (the node has node-2)"


def test_text_fits_80_columns_and_says_all_of_it(
    full: World, tmp_path: Path, capsys: Capture
) -> None:
    text = drawn(tmp_path, capsys, full.dump(), "b")
    assert max(map(len, text.splitlines())) <= 80
    said = " ".join(text.split())
    assert said.startswith("Pod default/b was refused; it runs on shared CPUs (NotEnoughCPUs)")
    assert "Who has what on node-1 default/a 4 CPUs: 2-5" in said
    assert "1. move default/a (4 CPUs: 2-5) to node-2, where it would fit" in said
    assert "-> main: CPUs 2-5" in said
    assert "Tried: creating it again, " in said
    assert "was not tried" in said


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "nothing is given; name pod/NAME, node/NAME or policy/NAME"),
        (["pod", "a", "b"], 2, "too many words"),
        (["thing", "a"], 2, "thing: is no kind"),
        (["pod/"], 2, "'' is not a name"),
        (["shop/a", "-n", "other"], 2, "names namespace shop, and -n names other"),
        (["pod/a", "-n", "shop"], 1, "no pod a in namespace shop, but in default; add -n"),
        (["pod/pendin"], 1, "no pod pendin in namespace default; did you mean pending?"),
        (["node/node-9"], 1, "there is no node node-9; did you mean node-1 or node-2?"),
        (["policy/wep"], 1, "there is no policy wep; did you mean web?"),
        (["zzz"], 1, "there is no pod, node or policy zzz in namespace default; there is"),
        (["pod/pending", "--node", "node-7"], 1, "there is no node node-7; did you mean node-1"),
        (["pod/b", "--node", "node-7"], 1, "there is no node node-7; did you mean node-1"),
        (["-n", "defualt", "b"], 1, "in namespace defualt, but in default; add -n"),
        (["-n", "defualt", "bb"], 1, "namespace defualt, which has no pods; did you mean default?"),
        (["pod/a", "--watch"], 2, "--watch needs an API server"),
    ],
)
def test_bad_input_is_named(  # noqa: PLR0917
    full: World, tmp_path: Path, capsys: Capture, words: list[str], status: int, message: str
) -> None:
    (tmp_path / "now.json").write_text(full.dump())
    assert main(["explain", *words, "--cluster", str(tmp_path / "now.json")]) == status
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_a_name_of_two_kinds_must_be_told_apart(tmp_path: Path, capsys: Capture) -> None:
    world = cluster(pod_body("web", "2"))
    (tmp_path / "now.json").write_text(world.dump())
    assert main(["explain", "web", "--cluster", str(tmp_path / "now.json")]) == 1
    error = capsys.readouterr().err
    assert "web is the name of several objects; give pod/web or policy/web" in error


@pytest.fixture
async def server(full: World) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, json.loads(full.dump()))
        yield started


async def test_the_server_is_asked_for_no_more_pods_than_needed(
    server: FakeApiServer, full: World, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "now.json").write_text(full.dump())
    for target in ("b", "c", "pending", "node/node-1", "policy/web"):
        status = await asked(server, tmp_path, "explain", target, "-o", "json")
        of_server = json.loads(capsys.readouterr().out)
        of_file = main(["explain", target, "--cluster", str(tmp_path / "now.json"), "-o", "json"])
        assert (status, of_server) == (of_file, json.loads(capsys.readouterr().out))
    listed = [
        one.query.get("fieldSelector", "") for one in server.requests if one.path == "/api/v1/pods"
    ]
    assert listed
    assert all(one.startswith("spec.nodeName=node-") for one in listed)


@pytest.mark.parametrize("right", ["get pods", "list nodes", "list cpupolicies", "list namespaces"])
async def test_a_missing_right_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, right: str
) -> None:
    server.forbidden.add(right)
    assert await asked(server, tmp_path, "explain", "pod/b") == 1
    captured = capsys.readouterr()
    assert f"tester may not {right}" in captured.err
    assert captured.out == ""


async def test_a_server_without_the_crds_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.unknown.update({"cpupolicies", "nodeassignments"})
    for target in ("b", "node/node-1", "policy/web"):
        assert await asked(server, tmp_path, "explain", target) == 1
        assert "does not know numapin.io; install numapin there" in capsys.readouterr().err


@pytest.mark.parametrize(("pod", "node"), [("pending", "node-1"), ("b", "node-2")])
async def test_a_node_that_is_named_is_read_though_others_have_more_free_cpus(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, pod: str, node: str
) -> None:
    """Only the best of the other nodes are read; these are as good as the named one, or better."""
    server.put(NODES, node_body("node-0", "8"))
    server.put(NODE_ASSIGNMENTS, {"metadata": {"name": "node-0", "generation": 1}, "spec": {}})
    status = await asked(
        server, tmp_path, "explain", pod, "--node", node, "--nodes", "0", "-o", "json"
    )
    captured = capsys.readouterr()
    assert (status, captured.err) == (3, "")
    (found,) = json.loads(captured.out)["explanations"]
    nodes = {one["node"] for one in found["remedies"] if one["kind"] == "node"}
    assert nodes == ({"node-2"} if pod == "b" else set())


async def test_only_so_many_other_nodes_are_tried(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    for number in range(3, 6):
        name = f"node-{number}"
        server.put(NODES, node_body(name, "8"))
        metadata = {"name": name, "generation": 1}
        server.put(NODE_ASSIGNMENTS, {"metadata": metadata, "spec": {}})
    assert await asked(server, tmp_path, "explain", "b", "--nodes", "1", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["notTried"][-1] == "3 of 4 other nodes were not tried; --nodes tries more"
    assert found["tried"]["node"] == 1


async def test_everything_of_a_cluster_is_read_as_the_server_has_it(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    """A pod whose claim does not exist has no CPUs of a driver, as the operator decides too."""
    body = pod_body("claiming", "1", node="node-2")
    body["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": "gone"}]
    body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
    server.put(PODS, body)
    assert await asked(server, tmp_path, "explain", "claiming", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["verdict"] == "is about to get CPUs of its own"
    server.remove(CPU_POLICIES, "web")
    assert await asked(server, tmp_path, "explain", "claiming", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["why"] == ["no CpuPolicy selects the node"]
