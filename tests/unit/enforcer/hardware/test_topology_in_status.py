"""What an enforcer reports of a captured machine is all that the planner needs, and is small."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from numapin_api.hardware.compact import LOCAL_CLASSES, compact_topology
from numapin_api.hardware.restore import restore_topology
from numapin_api.hardware.status import TopologyStatus
from numapin_api.topology import Topology
from numapin_enforcer.hardware.discovery import discover

LIMIT_BYTES = 6000
"""An object of etcd may have 1.5 MiB; 5,000 of these pass through one API server."""


@pytest.fixture
def topology(captured_machine: str, captured_machines: Path) -> Topology:
    root = captured_machines / captured_machine
    return discover(root / "sys", root / "proc")


def test_status_gives_the_machine_back(topology: Topology) -> None:
    read = TopologyStatus.model_validate_json(json.dumps(compact_topology(topology)))
    local = tuple(one for one in topology.pci if one.pci_class.startswith(LOCAL_CLASSES))
    restored = restore_topology(read)
    assert replace(restored, pci=tuple(sorted(restored.pci, key=lambda one: one.address))) == (
        replace(topology, pci=local)
    )


def test_status_is_small(topology: Topology) -> None:
    wire = {"topology": compact_topology(topology)}
    assert len(json.dumps(wire, separators=(",", ":"))) < LIMIT_BYTES
