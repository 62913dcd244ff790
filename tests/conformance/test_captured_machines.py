"""What `numapin topology` says of captured machines is a machine that `numapin simulate` takes."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main

CAPTURED = sorted((Path(__file__).parents[1] / "machines").glob("*.tar.xz"))


def _pod(uid: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Mi"}
    containers = [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]
    return {"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}}


@pytest.mark.parametrize("archive", CAPTURED, ids=lambda file: file.name.removesuffix(".tar.xz"))
def test_a_discovered_machine_is_simulated_unchanged(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as packed:
        # Debian 12's Python has no filters yet.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(tmp_path)
    assert main(["topology", "--root", str(tmp_path / name), "-o", "json"]) == 0
    (tmp_path / "found.json").write_text(capsys.readouterr().out)
    scenarios = [
        {
            "name": policy,
            "machine": "found",
            "policy": {
                "reserved": {"count": 1},
                "topology": {"policy": policy, "preferClosestNUMANodes": True},
                "memory": {"policy": "Static"},
            },
            "steps": [{"add": _pod("a", "2")}, {"add": _pod("b", "5")}, {"remove": "a"}],
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
