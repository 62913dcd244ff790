"""What the kubelet's checkpoint says, and whether it is still the kubelet's."""

import json
import logging
from pathlib import Path

import pytest

from numapin_enforcer.node.kubelet_checkpoint import (
    STATE_FILES,
    KubeletPins,
    checkpoint_replaced,
    pinned_containers,
    static_policy_conflict,
)

STATE_FILE, MEMORY_STATE_FILE = STATE_FILES


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


def test_a_conflict_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before there is a policy, only the log can say why the enforcer is not ready."""
    (tmp_path / STATE_FILE).write_text(json.dumps({"policyName": "static"}))
    pins = KubeletPins(tmp_path)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            pins.observe(full_resync=True)
            pins.log_conflict()
    (record,) = caplog.records
    assert "set cpuManagerPolicy to none" in record.__dict__["why"]


@pytest.mark.parametrize(
    ("content", "conflicts"),
    [
        (json.dumps({"policyName": "Static", "machineState": {}}), True),
        (json.dumps({"policyName": "None"}), False),
        (json.dumps({"data": json.dumps({"policyName": "Static"}), "dataChecksum": 1}), True),
        (json.dumps({"data": 7}), False),
        (json.dumps({"data": "[]"}), False),
    ],
    ids=["static", "none", "newest format alone", "damaged", "not an object"],
)
def test_the_policy_of_the_kubelets_memory_manager(
    tmp_path: Path, content: str, conflicts: bool
) -> None:
    (tmp_path / STATE_FILE).write_text(json.dumps({"policyName": "none"}))
    (tmp_path / MEMORY_STATE_FILE).write_text(content)
    conflict = static_policy_conflict(tmp_path)
    assert ("set memoryManagerPolicy to None" in conflict) == conflicts
    assert (str(tmp_path / MEMORY_STATE_FILE) in conflict) == conflicts


def test_a_checkpoint_that_exists_or_never_did_was_not_replaced(tmp_path: Path) -> None:
    assert checkpoint_replaced(tmp_path) == ""
    (tmp_path / STATE_FILE).write_text("{}")
    assert checkpoint_replaced(tmp_path) == ""


@pytest.mark.parametrize("file", STATE_FILES)
def test_a_checkpoint_without_a_folder_entry_was_replaced(tmp_path: Path, file: str) -> None:
    """As a pod sees it that mounts only this file: /proc/self/fd stands in for the mount."""
    with (tmp_path / "old").open("w") as old:
        (tmp_path / file).symlink_to(f"/proc/self/fd/{old.fileno()}")
        assert checkpoint_replaced(tmp_path) == ""
        (tmp_path / "old").unlink()
        assert "only a restart shows the new one" in checkpoint_replaced(tmp_path)


@pytest.mark.parametrize(
    ("cpu", "memory", "found"),
    [
        ('{"2"', "{}", None),
        ("static", "{", ["2"]),
        ("static", None, ["2"]),
        ("static", "Static", ["2 on 0"]),
        ('{"policyName": "static", "entries": 7}', "Static", []),
        ('{"policyName": "none"}', "Static", None),
        (None, "Static", None),
    ],
    ids=["damaged", "memory damaged", "none", "both", "bad entries", "no policy", "no state"],
)
def test_the_containers_that_the_kubelet_pins(
    tmp_path: Path, cpu: str | None, memory: str | None, found: list[str] | None
) -> None:
    texts = {
        "static": {"policyName": "static", "entries": {"uid": {"main": "2"}}},
        "Static": {"policyName": "Static", "entries": {"uid": {"main": [{"numaAffinity": [0]}]}}},
    }
    for name, text in ((STATE_FILE, cpu), (MEMORY_STATE_FILE, memory)):
        if text is not None:
            (tmp_path / name).write_text(json.dumps(texts[text]) if text in texts else text)
    pinned = pinned_containers(tmp_path)
    shown = pinned and [f"{one.cpus} on {one.mems}".removesuffix(" on ") for one in pinned]
    assert shown == (found or (None if found is None else ()))
