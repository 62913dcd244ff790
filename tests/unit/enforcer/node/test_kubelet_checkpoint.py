"""What the kubelet's checkpoint says, and whether it is still the kubelet's."""

import json
import logging
from pathlib import Path

import pytest

from numapin_api.nodeassignment import MAX_ENTRIES
from numapin_enforcer.node.kubelet_checkpoint import (
    MOST_CONTAINERS,
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
        ('{"2"', "{}", []),
        ("static", "{", ["2"]),
        ("static", None, ["2"]),
        ("static", "Static", ["2 on 0"]),
        ('{"policyName": "static", "entries": 7}', "Static", [" on 0"]),
        ('{"policyName": "none"}', "Static", [" on 0"]),
        (None, "Static", [" on 0"]),
        (None, None, []),
    ],
    ids=[
        "damaged",
        "memory damaged",
        "none",
        "both",
        "bad entries",
        "no CPU policy",
        "no CPU state",
        "no states",
    ],
)
def test_the_containers_that_the_kubelet_pins(
    tmp_path: Path, cpu: str | None, memory: str | None, found: list[str]
) -> None:
    texts = {
        "static": {"policyName": "static", "entries": {"uid": {"main": "2"}}},
        "Static": {"policyName": "Static", "entries": {"uid": {"main": [{"numaAffinity": [0]}]}}},
    }
    for name, text in ((STATE_FILE, cpu), (MEMORY_STATE_FILE, memory)):
        if text is not None:
            (tmp_path / name).write_text(json.dumps(texts[text]) if text in texts else text)
    pinned = pinned_containers(tmp_path)
    shown = [f"{one.cpus} on {one.mems}".removesuffix(" on ") for one in pinned]
    assert shown == found


@pytest.mark.parametrize(
    ("cpu", "memory", "problem"),
    [
        ('{"policyName": "static", "entries": 7}', "{}", "cpu_manager_state: entries is not"),
        (
            '{"policyName": "none"}',
            '{"policyName": "Static", "entries": 7}',
            "memory_manager_state:",
        ),
        ('{"policyName": "static"}', None, ""),
    ],
)
def test_a_conflict_says_what_cannot_be_taken_over(
    tmp_path: Path, cpu: str, memory: str | None, problem: str
) -> None:
    for name, text in ((STATE_FILE, cpu), (MEMORY_STATE_FILE, memory)):
        if text is not None:
            (tmp_path / name).write_text(text)
    pins = KubeletPins(tmp_path)
    pins.observe(full_resync=True)
    assert ("cannot be taken over" in pins.conflict) == bool(problem)
    assert problem in pins.conflict
    assert pins.pins_cpus == ("static" in cpu)


def test_as_many_containers_are_reported_as_the_status_may_list(tmp_path: Path) -> None:
    assert MOST_CONTAINERS == MAX_ENTRIES
    block = [{"numaAffinity": [0]}]
    entries = {f"uid-{number}": {"main": block} for number in range(MOST_CONTAINERS + 1)}
    state = {"policyName": "Static", "entries": entries}
    (tmp_path / MEMORY_STATE_FILE).write_text(json.dumps(state))
    assert len(pinned_containers(tmp_path)) == MOST_CONTAINERS
