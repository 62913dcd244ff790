"""`numapin topology` finds in captured machines what conformance and simulation start from."""

import json
import tarfile
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.values.placement import pod_body


def _name(archive: Path) -> str:
    return archive.name.removesuffix(".tar.xz")


CAPTURED = sorted((Path(__file__).parents[1] / "machines").glob("*.tar.xz"))
RECORDED = Path(__file__).parent / "machines"
CORES_RECORDED_AS_SOCKETS = {"power7-256cpu-8n"}
"""The kubelet was asked about a socket for each core, where discovery takes a NUMA node for one."""
BOTH = [file for file in CAPTURED if (RECORDED / f"{_name(file)}.json").exists()]


def _discovered(archive: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `numapin topology -o json` prints of a captured machine."""
    with tarfile.open(archive) as packed:
        # Python 3.11.3 and older do not know filters, 3.12 warns without one.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(folder)
    assert main(["topology", "--root", str(folder / _name(archive)), "-o", "json"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("archive", BOTH, ids=_name)
def test_discovery_finds_the_machine_that_the_kubelet_answered_for(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(_discovered(archive, tmp_path, capsys))
    recorded = json.loads((RECORDED / f"{_name(archive)}.json").read_text())
    for node in found["numaNodes"]:
        node["hugepages"] = {}  # the kubelet was asked about machines without any
    if _name(archive) in CORES_RECORDED_AS_SOCKETS:
        for machine in (found, recorded):
            machine["cpus"] = [[*row[:2], *row[3:]] for row in machine["cpus"]]
    assert {key: found[key] for key in recorded} == recorded


@pytest.mark.parametrize("archive", CAPTURED, ids=_name)
def test_a_discovered_machine_is_simulated_unchanged(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "found.json").write_text(_discovered(archive, tmp_path, capsys))
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
