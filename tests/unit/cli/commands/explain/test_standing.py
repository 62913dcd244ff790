"""`numapin explain`: how each kind of pod stands, and what a person gets wrong."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.fakes.worlds.asked_cluster import Capture, drawn, explained
from support.fakes.worlds.described_cluster import World, cluster
from support.values.operator import Body, condition, pod_body


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
        (
            pod_body("p", "2"),
            {"pods": {"confinedNamespaces": ["default"]}},
            0,
            "confinedNamespaces keeps pods of default on the reserved CPUs",
            [],
        ),
        (pod_body("p", "2"), {"mode": "None"}, 0, "the policy's mode is None", []),
        (pod_body("p", "2"), {"nodeSelector": {"pool": "x"}}, 3, "no CpuPolicy selects", []),
        (pod_body("p", "9"), {"reserved": {"cpus": "77"}}, 3, "this machine has no", []),
    ],
    ids=[
        "placed",
        "half",
        "burstable",
        "selector",
        "confined",
        "none",
        "no-policy",
        "stalled",
    ],
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


def test_a_node_says_what_disturbs_its_exclusive_cpus(
    full: World, tmp_path: Path, capsys: Capture
) -> None:
    dump = json.loads(full.dump())
    for one in dump["items"]:
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-1":
            one["status"]["disturbances"] = [
                {"kind": "Interrupt", "name": "eth0-TxRx-3", "cpus": "2-3"},
                {"kind": "KernelThread", "name": "kworker", "cpus": "5"},
            ]
    status, found = explained(tmp_path, capsys, json.dumps(dump), "node/node-1")
    assert status == 0
    texts = {one["subject"]: one["text"] for one in found["facts"]}
    assert texts["CPUs 2-3"] == "interrupt eth0-TxRx-3 comes there again and again"
    assert texts["CPUs 5"] == "kernel thread kworker comes there again and again"


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
