"""What `numapin plan` foresees is what the operator then writes, over random clusters and edits."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from support.fakes.worlds.described_cluster import World, cluster, node_body
from support.values.moves import POLICY as DYNAMIC
from support.values.moves import fragmented_node
from support.values.operator import Body, condition, enforcer_status, pod_body, policy_body


def policy(name: str = "web", **spec: Any) -> Body:
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "CpuPolicy"}
    return kind | {"metadata": {"name": name}, "spec": spec}


def plan(folder: Path, world: World, *arguments: str, **files: Any) -> int:
    """Run `numapin plan` on a dump, with each of `files` as `-f`."""
    (folder / "now.json").write_text(world.dump())
    flags = []
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
        flags += ["-f", str(folder / f"{name}.json")]
    return main(["plan", "--cluster", str(folder / "now.json"), *flags, *arguments])


def test_a_diff_shows_what_an_edit_changes_and_what_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = cluster(pod_body("a", "4", namespace="fast"))
    assert plan(tmp_path, world, "-o", "diff") == 0
    assert capsys.readouterr().out == "# 0 of 2 NodeAssignments would change\n"
    edit = policy(reserved={"cpus": "6-7"})
    assert plan(tmp_path, world, "-o", "diff", edit=edit) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["--- node-1 now", "+++ node-1 then"]
    assert "-policy: {name: web, generation: 1" in {line[:34] for line in lines}
    assert "+policy: {name: web, generation: 2" in {line[:34] for line in lines}
    assert "-pools: {reserved: 0-1, shared: '0-1,6-7'}" in lines
    assert "+pools: {reserved: 6-7, shared: '0-1,6-7'}" in lines
    assert lines[-1] == "# 2 of 2 NodeAssignments would change"
    assert plan(tmp_path, world, "-o", "diff", edit=policy(reserved={"cpus": "2"})) == 0
    assert plan(tmp_path, world, "--node", "node-1", edit=policy(reserved={"cpus": "2"})) == 0
    drawn = " ".join(capsys.readouterr().out.split())
    assert "Node node-1: policy web; the NodeAssignment changes" in drawn
    assert "WaitingForContainers: containers keep what they have until they end" in drawn


@pytest.mark.parametrize(
    ("edit", "status", "said"),
    [
        (policy(mode="None"), 0, "mode None: every container runs as without numapin"),
        (policy(onUnsatisfiable="Hold"), 0, "Node node-1: policy web; the NodeAssignment changes"),
        (policy(reserved={"cpus": "9"}), 1, "ImpossibleOnNode: reserved.cpus: this machine has no"),
        (policy(nodeSelector={"pool": "x"}), 0, "no policy governs it; the NodeAssignment changes"),
        (policy("second", priority=1), 0, "Node node-1: policy second; the NodeAssignment changes"),
        (policy("second"), 0, "Node node-1: policy web; the NodeAssignment stays as it is"),
    ],
    ids=["none", "hold", "impossible", "unselected", "above", "younger"],
)
def test_a_policy_that_gives_nothing_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: Body, status: int, said: str
) -> None:
    assert plan(tmp_path, cluster(), "--node", "node-1", edit=edit) == status
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_pod_of_a_file_is_tried_on_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = pod_body("tried", "2", node="")
    del pod["metadata"]["uid"], pod["metadata"]["creationTimestamp"]
    world = cluster(pod_body("a", "4", namespace="fast"), pod_body("pending", node=""))
    assert plan(tmp_path, world, pod=pod) == 1
    assert "pod default/tried is bound to no node; choose with --node" in capsys.readouterr().err
    assert plan(tmp_path, world, "--node", "node-1", "-o", "json", pod=pod) == 0
    captured = capsys.readouterr()
    (node,) = json.loads(captured.out)["nodes"]
    assert [(one["pod"], one["cpus"]) for one in node["spec"]["containers"]] == [
        ("a", "2-5"),
        ("tried", "6-7"),
    ]
    assert captured.err == "left out: 1 pod bound to no node\n"


def test_a_node_gives_labels_and_its_reservation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = cluster(spec={})
    assert plan(tmp_path, world, "-o", "json") == 0
    listed = json.loads(capsys.readouterr().out)["nodes"]
    assert [one["spec"]["pools"]["reserved"] for one in listed] == ["0", "0-2"]


@pytest.mark.parametrize(
    ("dropped", "spec", "message"),
    [
        ("CpuPolicy", {}, "no CpuPolicy is given; add one with -f (kubectl get cpupol -o yaml)"),
        ("Pod", {}, "no Pod is given, although NodeAssignments list containers; add the Pods"),
        (
            "Namespace",
            {"pods": {"namespaceSelector": {"matchLabels": {"team": "a"}}}},
            "Namespace fast of pod a is not given; add it (kubectl get ns -o yaml)",
        ),
        ("Node", {}, "there is a NodeAssignment and no Node; add the Nodes"),
    ],
)
def test_a_dump_without_a_kind_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dropped: str, spec: Body, message: str
) -> None:
    world = cluster(pod_body("a", "4", namespace="fast"), spec=spec)
    dump = json.loads(world.dump())
    dump["items"] = [one for one in dump["items"] if one["kind"] != dropped]
    (tmp_path / "part.json").write_text(json.dumps(dump))
    assert main(["plan", "-f", str(tmp_path / "part.json")]) == 1
    assert message in capsys.readouterr().err


def test_a_node_without_an_assignment_has_the_machine_that_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = {
        "cpus": [[cpu, cpu, 0, -1, 0] for cpu in range(4)],
        "numaNodes": [{"id": 0, "memoryBytes": 8 << 30}],
    }
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    files = {"policy": policy(reserved={"count": 1}), "node": node_body("new", "8")}
    flags = []
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
        flags += ["-f", str(tmp_path / f"{name}.json")]
    assert main(["plan", *flags, "-o", "json"]) == 0
    (unknown,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (unknown["write"], unknown["reason"]) == ("create", "WaitingForTopology")
    assert "pools" not in unknown["spec"]
    assert main(["plan", *flags, "-o", "json", "--machine", str(tmp_path / "machine.json")]) == 0
    (known,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (known["write"], known["spec"]["pools"]["shared"]) == ("create", "0-3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "List", "items": [{"kind": "List"}]}, "items[0]: is a List inside a List; give"),
        ({"kind": "Node", "metadata": {}}, "document 1: metadata.name: is missing; name the Node"),
        ({"kind": "Node", "apiVersion": "v2"}, "document 1: apiVersion: must be v1, not 'v2'"),
        (
            {
                "kind": "NodeAssignment",
                "apiVersion": "numapin.io/v1beta1",
                "metadata": {"name": "node-1"},
            },
            "only numapin writes it; leave it out",
        ),
        (pod_body("b", node="gone") | {"metadata": {"name": "b"}}, "there is no Node gone; add it"),
        (pod_body("b") | {"metadata": {"name": "b", "uid": "uid-a"}}, "has the UID of pod fast/a"),
        (policy(reserved={"cpus": "0", "count": 1}), "spec.reserved: give cpus or count, not both"),
        (policy(reserved=7), "spec.reserved: "),
        ([1], "must be an object with apiVersion and kind"),
    ],
)
def test_what_cannot_be_applied_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: object, message: str
) -> None:
    world = cluster(pod_body("a", "4", namespace="fast"))
    assert plan(tmp_path, world, bad=content) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "bad.json: document 1" in error


@pytest.mark.parametrize("output", ["text", "diff"])
def test_what_a_node_reports_does_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    world = cluster()
    lie = [condition("Stalled", reason="CPUsShared", message="\x1b]0;owned\x07\nnode-2: fine")]
    generation = world.cluster.assignments["node-1"]["metadata"]["generation"]
    world.cluster.put_status("node-1", enforcer_status(generation, conditions=lie))
    assert plan(tmp_path, world, "--node", "node-1", "-o", output) == 1
    said = capsys.readouterr().out
    assert "CPUsShared: \\x1b]0;owned\\x07\\nnode-2: fine" in said
    assert "\x1b" not in said


def test_a_name_of_no_node_and_two_standard_inputs_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(tmp_path, cluster(), "--node", "x") == 1
    assert "--node x: there is no such Node; there is node-1, node-2" in capsys.readouterr().err
    assert main(["plan", "-f", "-", "--cluster", "-"]) == 1
    assert "standard input (-) is given twice" in capsys.readouterr().err
    assert main(["plan"]) == 1
    assert "nothing is given to plan; name files with -f or --cluster" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[" * 200_000 + "]" * 200_000, "- " * 5000, '{"a":' * 100_000])
def test_what_is_nested_too_deeply_ends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "deep.yaml").write_text(text)
    assert main(["plan", "-f", str(tmp_path / "deep.yaml")]) == 1
    assert "deep.yaml: " in capsys.readouterr().err


def test_the_uid_of_a_policy_that_the_cluster_lacks_is_not_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world, new = cluster(), policy("new", priority=9, reserved={"count": 3})
    assert plan(tmp_path, world, "-o", "json", new=new) == 0
    first = json.loads(capsys.readouterr().out)["nodes"][0]["spec"]["policy"]
    assert first["name"] == "new"
    assert "uid" not in first
    assert plan(tmp_path, world, "-o", "json", web=policy(reserved={"count": 3})) == 0
    first = json.loads(capsys.readouterr().out)["nodes"][0]["spec"]["policy"]
    assert first["uid"] == world.cluster.policies["web"]["metadata"]["uid"]


class Fragmented(World):
    """A node on which a pod fits once another one has moved."""

    def dump(self) -> str:
        node, ours = fragmented_node(), {"apiVersion": "numapin.io/v1beta1"}
        for one in node.entries:
            one["container"] = "main"
        running = ["uid-small", "uid-large"]
        assignment = {
            "kind": "NodeAssignment",
            "metadata": {"name": "node-1", "uid": "u", "resourceVersion": "7", "generation": 1},
            "spec": node.spec,
            "status": enforcer_status(1, topology=node.topology, running=running),
        }
        policy_of_node = {"kind": "CpuPolicy"} | policy_body("policy", DYNAMIC)
        pods_on = [
            pod_body("small", "1"),
            pod_body("large", "2"),
            pod_body("demand", "3", bound="2030-01-01T00:00:00Z"),
        ]
        items = [self.nodes[0], *pods_on, ours | assignment, ours | policy_of_node]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_the_moves_by_which_a_pod_fits_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(tmp_path, Fragmented(), "--node", "node-1") == 0
    said = " ".join(capsys.readouterr().out.split())
    wanted = "moves default/small main from CPUs 1 to 6 so that default/demand fits on NUMA node 0"
    assert wanted in said


@pytest.mark.parametrize(
    ("first", "again", "generation"),
    [
        ({"reserved": {"cpus": "0-1"}}, {"reserved": {"cpus": "0,1"}}, 2),
        ({"rollout": {"maxConcurrent": 1}}, {"rollout": {"maxConcurrent": "1"}}, 2),
        ({"reserved": {"count": 2}}, {"reserved": {"count": 2, "strict": False}}, 1),
        ({"reserved": {"count": 2}}, {"mode": "Static", "reserved": {"count": 2}}, 1),
    ],
    ids=["list", "number-or-text", "default-of-a-field", "default"],
)
def test_another_spelling_is_another_generation_and_tries_refused_pods_again(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: Body,
    again: Body,
    generation: int,
) -> None:
    """An API server compares what is written, once it has filled in the defaults."""
    world = cluster(pod_body("large", "9"), spec=first)
    assert plan(tmp_path, world, "-o", "json", web=policy(**again)) == 0
    planned = json.loads(capsys.readouterr().out)["nodes"][0]
    assert planned["spec"]["refused"]
    assert planned["spec"]["policy"]["generation"] == generation
