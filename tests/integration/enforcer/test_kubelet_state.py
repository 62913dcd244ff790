"""The kubelet's checkpoint as a pod sees it that mounts that one file, on a real bind mount."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_enforcer.kubelet import replaced, static_policy

NONE, STATIC = '{"policyName":"none"}', '{"policyName":"static"}'


@pytest.fixture
def mounted(root: None, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The kubelet's folder, and the pod's with nothing in it but the mounted file."""
    host, pod = tmp_path / "host", tmp_path / "pod"
    for folder in (host, pod):
        folder.mkdir()
        (folder / "cpu_manager_state").write_text(NONE)
    target = pod / "cpu_manager_state"
    subprocess.run(["mount", "--bind", host / "cpu_manager_state", target], check=True)
    yield host, pod
    subprocess.run(["umount", target], check=True)


def test_a_checkpoint_that_was_replaced_asks_for_a_restart(mounted: tuple[Path, Path]) -> None:
    host, pod = mounted
    assert replaced(pod) == ""
    (host / "new").write_text(STATIC)
    (host / "new").replace(host / "cpu_manager_state")
    assert static_policy(host)
    assert static_policy(pod) == ""
    assert "only a restart shows the new one" in replaced(pod)
    assert replaced(host) == ""


def test_a_kubelet_without_a_checkpoint_asks_for_nothing(tmp_path: Path) -> None:
    assert replaced(tmp_path) == ""
