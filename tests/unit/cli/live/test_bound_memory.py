"""What is said of a container with bound memory and no CPUs of its own, beside one with CPUs."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.fakes.worlds.described_cluster import cluster
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]
PODS = ("bound", "late")
SPEC = {"reserved": {"count": 1}, "memory": {"policy": "Static"}}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """`bound` has what it was given; `late`, with a CPU, is on the pool's CPUs still."""
    made = json.loads(cluster(pod_body("bound", "500m"), pod_body("late", "1"), spec=SPEC).dump())
    for one in made["items"]:
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-1":
            shared = {"container": "main", "cpus": one["spec"]["pools"]["shared"], "mems": "0"}
            one["status"]["containers"] = [shared | {"podUID": f"uid-{pod}"} for pod in PODS]
    file = tmp_path / "now.json"
    file.write_text(json.dumps(made))
    return file


def explained(dump: Path, capsys: Capture, target: str) -> tuple[int, Body]:
    status = main(["explain", target, "--cluster", str(dump), "-o", "json"])
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    return status, found


def test_its_pod_has_its_memory_bound_and_no_cpus_of_its_own(dump: Path, capsys: Capture) -> None:
    status, found = explained(dump, capsys, "pod/bound")
    assert (status, found["verdict"]) == (0, "has its memory bound, and runs on shared CPUs")
    assert found["facts"] == [{"subject": "main", "text": "NUMA 0; in the kernel"}]


def test_its_node_lists_what_the_kernel_lacks_alone(dump: Path, capsys: Capture) -> None:
    _, found = explained(dump, capsys, "node/node-1")
    lacking = [one for one in found["facts"] if "in the kernel" in one["text"]]
    assert lacking == [
        {
            "subject": "default/late main",
            "text": "was given CPUs 1, NUMA 0; in the kernel: has 0,2-7",
        }
    ]
