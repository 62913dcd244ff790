"""`numapin topology` finds in captured machines what conformance and simulation start from."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from numapin_lab.played.machines import captured_names, unpack
from support.values.placement import pod_body

CAPTURED = captured_names()
RECORDED = Path(__file__).parent / "machines"
CORES_RECORDED_AS_SOCKETS = {"power7-256cpu-8n"}
"""The kubelet was asked about a socket for each core, where discovery takes a NUMA node for one."""
BOTH = [name for name in CAPTURED if (RECORDED / f"{name}.json").exists()]


def _discovered(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `numapin topology -o json` prints of a captured machine."""
    assert main(["topology", "--root", str(unpack(name, folder)), "-o", "json"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", BOTH)
def test_discovery_finds_the_machine_that_the_kubelet_answered_for(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(_discovered(name, tmp_path, capsys))
    recorded = json.loads((RECORDED / f"{name}.json").read_text())
    for node in found["numaNodes"]:
        node["hugepages"] = {}  # the kubelet was asked about machines without any
    if name in CORES_RECORDED_AS_SOCKETS:
        for machine in (found, recorded):
            machine["cpus"] = [[*row[:2], *row[3:]] for row in machine["cpus"]]
    assert {key: found[key] for key in recorded} == recorded


@pytest.mark.parametrize("name", CAPTURED)
def test_a_discovered_machine_is_simulated_unchanged(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "found.json").write_text(_discovered(name, tmp_path, capsys))
    scenarios = [
        {
            "name": policy,
            "machine": "found",
            "policy": {
                "reserved": {"count": 1},
                "topology": {"policy": policy, "preferClosestNUMANodes": True},
                "memory": {"policy": "Static"},
            },
            "steps": [{"add": pod_body("a", "2")}, {"add": pod_body("b", "5")}, {"remove": "a"}],
        }
        for policy in ("None", "BestEffort", "Restricted", "SingleNUMANode")
    ]
    (tmp_path / "asked.jsonl").write_text("".join(f"{json.dumps(s)}\n" for s in scenarios))
    asked = str(tmp_path / "asked.jsonl")
    assert main(["simulate", "--machines", str(tmp_path), "--as-operator", asked]) == 0
    for line in capsys.readouterr().out.splitlines():
        first, *_ = json.loads(line)["steps"]
        assert first["admitted"], line
        assert len(first["containers"]) == 1
