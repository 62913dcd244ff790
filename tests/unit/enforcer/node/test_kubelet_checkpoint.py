"""What the kubelet's checkpoint says, and whether it is still the kubelet's."""

import json
from pathlib import Path

import pytest

from numapin_enforcer.node.kubelet_checkpoint import (
    STATE_FILE,
    checkpoint_replaced,
    static_policy_conflict,
)


@pytest.mark.parametrize(
    ("content", "conflicts"),
    [
        (json.dumps({"policyName": "static", "defaultCpuSet": "0-3"}), True),
        (json.dumps({"policyName": "none", "defaultCpuSet": ""}), False),
        ("{", False),
        ("[]", False),
        (None, False),
    ],
    ids=["static", "none", "damaged", "not an object", "missing"],
)
def test_the_kubelets_policy(tmp_path: Path, content: str | None, conflicts: bool) -> None:
    if content is not None:
        (tmp_path / STATE_FILE).write_text(content)
    assert bool(static_policy_conflict(tmp_path)) == conflicts


def test_the_conflict_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text(json.dumps({"policyName": "static"}))
    conflict = static_policy_conflict(tmp_path)
    assert str(tmp_path / STATE_FILE) in conflict
    assert "set cpuManagerPolicy to none" in conflict


def test_a_checkpoint_that_exists_or_never_did_was_not_replaced(tmp_path: Path) -> None:
    assert checkpoint_replaced(tmp_path) == ""
    (tmp_path / STATE_FILE).write_text("{}")
    assert checkpoint_replaced(tmp_path) == ""


def test_a_checkpoint_without_a_folder_entry_was_replaced(tmp_path: Path) -> None:
    """As a pod sees it that mounts only this file: /proc/self/fd stands in for the mount."""
    with (tmp_path / "old").open("w") as old:
        (tmp_path / STATE_FILE).symlink_to(f"/proc/self/fd/{old.fileno()}")
        assert checkpoint_replaced(tmp_path) == ""
        (tmp_path / "old").unlink()
        assert "only a restart shows the new one" in checkpoint_replaced(tmp_path)
