from pathlib import Path

import pytest

from numapin_lab.controlplane.certificates import Authority


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """What the kubelet mounts into a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("first")
    authority = Authority(tmp_path / "pki")
    authority.create()
    (folder / "ca.crt").write_text(authority.certificate.read_text())
    return folder
