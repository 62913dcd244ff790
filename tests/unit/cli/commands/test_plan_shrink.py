"""`numapin plan` foresees a shrink as the operator writes it, whether workloads are told or not."""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_api import names
from numapin_cli.main import main
from support.fakes.worlds.described_cluster import node_body
from support.values.moves import container
from support.values.operator import enforcer_status, pod_body, policy_body
from support.values.placement import machine

OURS = {"apiVersion": names.API_VERSION}


def dump(annotations: dict[str, str]) -> str:
    """A cluster in which the kubelet has granted a pod one CPU instead of two."""
    small = pod_body("small", "1")
    small["metadata"] |= {"generation": 2, "annotations": annotations}
    granted = {"name": "main", "allocatedResources": {"cpu": "1", "memory": "64Mi"}}
    small["status"] = {"phase": "Running", "containerStatuses": [granted]}
    spec = {
        "policy": {"name": "policy", "generation": 1, "since": 1},
        "pools": {"reserved": "0", "shared": "0-3,6-7"},
        "containers": [container("small", "4-5") | {"container": "main"}],
    }
    assignment = {
        "kind": "NodeAssignment",
        "metadata": {"name": "node-1", "uid": "u", "resourceVersion": "7", "generation": 1},
        "spec": spec,
        "status": enforcer_status(1, topology=machine(8, 1, 2), running=["uid-small"]),
    }
    policy = {"kind": "CpuPolicy"} | policy_body("policy", {"reserved": {"cpus": "0"}})
    items = [node_body("node-1", "7"), small, OURS | assignment, OURS | policy]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, {"cpus": "4"}),
        (
            {names.CPUS_ANNOTATION: "{}"},
            {"cpus": "4-5", "moving": {"leaving": "5", "leavingMems": ""}},
        ),
    ],
    ids=["nobody-is-told", "told"],
)
def test_a_shrink_waits_where_a_pod_has_the_annotation(
    annotations: dict[str, str],
    wanted: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "now.json").write_text(dump(annotations))
    assert main(["plan", "--cluster", str(tmp_path / "now.json"), "-o", "json"]) == 0
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    (entry,) = node["spec"]["containers"]
    assert {key: entry[key] for key in ("cpus", "moving") if key in entry} == wanted
