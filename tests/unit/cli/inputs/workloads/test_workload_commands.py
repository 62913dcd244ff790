"""`numapin plan` and `numapin explain` of what `helm template` prints."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.fakes.worlds.described_cluster import World, cluster
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]
CHART = """\
---
# Source: store/templates/service.yaml
apiVersion: v1
kind: Service
metadata: {name: store}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: store}}
    spec:
      containers:
      - {name: main, resources: {limits: {cpu: CPUS, memory: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: store-test, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: main}]}
"""
LEFT_OUT = [
    "left out: Pod default/store-test: a hook of Helm, which runs and ends at another time",
    "left out: 1 Service: nothing is planned for these kinds",
]


def run(folder: Path, command: str, world: World, cpus: int, *more: str) -> int:
    (folder / "chart.yaml").write_text(CHART.replace("CPUS", str(cpus)))
    (folder / "now.json").write_text(world.dump())
    files = ["-f", str(folder / "chart.yaml"), "--cluster", str(folder / "now.json")]
    return main([command, *files, "-o", "json", *more])


def planned(capsys: Capture) -> tuple[Body, list[str]]:
    captured = capsys.readouterr()
    (node,) = json.loads(captured.out)["nodes"]
    return node["spec"], captured.err.splitlines()


def test_the_pods_of_a_chart_are_planned_on_a_node(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "plan", cluster(), 2, "--node", "node-1") == 0
    spec, said = planned(capsys)
    assert [(one["pod"], one["cpus"]) for one in spec["containers"]] == [
        ("store-0", "2-3"),
        ("store-1", "4-5"),
        ("store-2", "6-7"),
    ]
    assert said == LEFT_OUT


def test_without_a_node_it_is_asked_for(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "plan", cluster(), 2) == 1
    said = "document 2: spec.template: pod default/store-0 is bound to no node; choose with --node"
    assert said in capsys.readouterr().err


def test_an_edited_workload_takes_the_place_of_its_pods(tmp_path: Path, capsys: Capture) -> None:
    old = pod_body("store-0", "2")
    old["metadata"]["ownerReferences"] = [
        {"kind": "StatefulSet", "name": "store", "uid": "u", "controller": True}
    ]
    world = cluster(old, pod_body("other", "2"))
    assert run(tmp_path, "plan", world, 1, "--node", "node-1") == 0
    spec, said = planned(capsys)
    assert [(one["pod"], one["cpus"]) for one in spec["containers"]] == [
        ("other", "2-3"),
        ("store-0", "4"),
        ("store-1", "5"),
        ("store-2", "6"),
    ], "the old one had 4-5"
    assert "StatefulSet default/store: 1 pod of the cluster replaced by 3" in said


def test_one_pod_of_each_workload_is_explained(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "explain", cluster(), 2) == 0
    captured = capsys.readouterr()
    (found,) = json.loads(captured.out)["explanations"]
    assert found["subject"].startswith("pod default/store-2")
    assert captured.err.splitlines() == [
        *LEFT_OUT,
        "StatefulSet default/store: default/store-2 is explained, as each of its 3 pods",
    ]
    assert run(tmp_path, "explain", cluster(), 9) == 3


def test_the_namespace_of_what_names_none_is_given(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "plan", cluster(), 2, "--node", "node-1", "-n", "fast") == 0
    spec, said = planned(capsys)
    assert {one["namespace"] for one in spec["containers"]} == {"fast"}
    assert said[0].startswith("left out: Pod fast/store-test")
    assert run(tmp_path, "explain", cluster(), 2, "-n", "fast") == 0
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["subject"] == "pod fast/store-2"


def test_a_file_without_any_pod_has_nothing_to_explain(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "none.yaml").write_text("{apiVersion: v1, kind: Service, metadata: {name: a}}")
    (tmp_path / "now.json").write_text(cluster().dump())
    files = ["-f", str(tmp_path / "none.yaml"), "--cluster", str(tmp_path / "now.json")]
    assert main(["explain", *files]) == 1
    assert "none.yaml: no pod is created from it; give Pods" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["CpuPolicy", "Node"])
def test_an_edit_is_for_plan(tmp_path: Path, capsys: Capture, kind: str) -> None:
    version = "numapin.io/v1beta1" if kind == "CpuPolicy" else "v1"
    (tmp_path / "a.yaml").write_text(
        f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}}}"
    )
    assert main(["explain", "-f", str(tmp_path / "a.yaml")]) == 1
    assert f"kind: {kind} cannot be explained, give Pods or workloads" in capsys.readouterr().err
