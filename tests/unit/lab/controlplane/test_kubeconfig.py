"""The kubeconfig files that the lab writes."""

from pathlib import Path

import yaml

from numapin_lab.controlplane import kubeconfig


def test_a_kubeconfig_names_one_user_of_one_cluster(tmp_path: Path) -> None:
    path = kubeconfig.write(tmp_path / "k", "https://x:1", Path("/ca"), {"tokenFile": "/token"})
    assert path.stat().st_mode & 0o777 == 0o600
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == found["contexts"][0]["name"]
    assert found["users"][0]["user"] == {"tokenFile": "/token"}
    assert found["clusters"][0]["cluster"] == {
        "server": "https://x:1",
        "certificate-authority": "/ca",
    }
