"""Machines of the recorded kubelet answers that were derived from a captured machine are equal."""

import json
from pathlib import Path

import pytest

from numapin_api.hardware.machine_file import machine_document
from numapin_enforcer.hardware.discovery import discover

TESTS = Path(__file__).parents[3]
RECORDED = sorted((TESTS / "conformance" / "machines").glob("*.json"))
DERIVED = [path.stem for path in RECORDED if (TESTS / "machines" / f"{path.stem}.tar.xz").exists()]

HUGE_PAGES_LEFT_OUT = {"skylake-2s2n-smt2-pci"}
"""Recorded without the 2048 huge pages that each of its NUMA nodes had when it was captured."""

CORES_RECORDED_AS_SOCKETS = {"power7-256cpu-8n"}
"""Recorded with a socket for each core, by its core_siblings; we have one for each NUMA node."""


def test_eleven_machines_are_in_both() -> None:
    assert len(DERIVED) == 11


@pytest.mark.parametrize("name", DERIVED)
def test_discovered_machine_is_the_recorded_one(name: str, captured_machines: Path) -> None:
    root = captured_machines / name
    found = machine_document(discover(root / "sys", root / "proc"))
    recorded = json.loads((TESTS / "conformance" / "machines" / f"{name}.json").read_text())
    if name in HUGE_PAGES_LEFT_OUT:
        assert [node["hugepages"] for node in found["numaNodes"]] == [{"2Mi": 2048}] * 2
        for node in found["numaNodes"]:
            node["hugepages"] = {}
    if name in CORES_RECORDED_AS_SOCKETS:
        for machine in (found, recorded):
            machine["cpus"] = [[*row[:2], *row[3:]] for row in machine["cpus"]]
    assert {key: found[key] for key in recorded} == recorded
