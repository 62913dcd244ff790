"""A report of a node: its cgroups, its hardware and the files of its kubelet."""

import json
from pathlib import Path

import pytest

from numapin_cli.main import main
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import contents, reported

Capture = pytest.CaptureFixture[str]


async def test_a_report_of_cluster_and_node_is_complete(
    server: FakeApiServer, tmp_path: Path, a_node: list[str], capsys: Capture
) -> None:
    files = await reported(server, tmp_path, *a_node, status=0)
    assert "Everything was collected." in files["README.txt"]
    assert "node/cgroups.txt" in files
    assert "not collected" not in capsys.readouterr().err


def test_a_node_without_a_cluster_is_reported(
    tmp_path: Path, a_node: list[str], capsys: Capture
) -> None:
    file, flags = tmp_path / "r.tar.gz", a_node
    status = main(["report", "-o", str(file), "--kubeconfig", str(tmp_path / "none"), *flags])
    assert status == 3, capsys.readouterr().err
    files = contents(file.read_bytes())
    assert files["node/cgroups.txt"].startswith("kubepods  cpus=0-3 mems=0 effective=0-3")
    assert json.loads(files["node/topology.json"])["cpus"]
    assert json.loads(files["node/node.json"])["cgroupVersion"] == 2
    assert files["node/cpu_manager_state"] == '{"policyName":"none"}'
    assert main(["plan", "--cluster", str(file)]) == 1
    assert "there is no objects.json in it" in capsys.readouterr().err
