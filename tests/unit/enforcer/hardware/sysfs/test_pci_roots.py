"""PCI root complexes and their NUMA nodes, as the links of sysfs give them."""

import os
from pathlib import Path

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.hardware.sysfs.pci import read_pci, read_pci_roots
from numapin_enforcer.hardware.sysfs.remarks import Remarks
from numapin_enforcer.hardware.sysfs.sysfs_tree import SysfsTree

CPUS = {0: CpuSet.parse("0-3"), 1: CpuSet.parse("4-7")}


def device(sysfs: Path, below: str, numa_node: int) -> None:
    """Make a device as the kernel does: a folder, and a relative link to it."""
    folder = sysfs / "devices" / below
    folder.mkdir(parents=True)
    (folder / "class").write_text("0x060400\n")
    (folder / "numa_node").write_text(f"{numa_node}\n")
    link = sysfs / "bus/pci/devices" / folder.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(folder, link.parent))


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param({"pci0000:3a/0000:3a:00.0": 1}, {"pci0000:3a": "1"}, id="a port"),
        pytest.param(
            {"pci0000:3a/0000:3a:00.0": -1, "pci0000:3a/0000:3a:01.0/0000:3b:00.0": 0},
            {"pci0000:3a": "0"},
            id="a device behind a bridge",
        ),
        pytest.param(
            {"pci0000:c0/0000:c0:01.1/pci10000:c0/10000:c0:02.0": 1},
            {"pci0000:c0": "1"},
            id="behind Intel VMD: the outermost",
        ),
        pytest.param(
            {"pci0000:00/0000:00:01.0": 0, "pci0000:00/0000:00:02.0": 1},
            {"pci0000:00": "0-1"},
            id="devices of two NUMA nodes",
        ),
        pytest.param({"pci0000:00/0000:00:01.0": -1}, {}, id="no NUMA node is known"),
        pytest.param({"pci0000:00/0000:00:01.0": 7}, {}, id="no such NUMA node"),
        pytest.param({"platform/pci-host/0000:00:01.0": 0}, {}, id="no root complex"),
    ],
)
def test_roots(tmp_path: Path, devices: dict[str, int], expected: dict[str, str]) -> None:
    for below, numa_node in devices.items():
        device(tmp_path, below, numa_node)
    tree = SysfsTree(tmp_path, Remarks())
    found = read_pci_roots(tree, read_pci(tree, CPUS))
    assert {one.name: str(one.numa_nodes) for one in found} == expected


def test_a_link_that_is_none_has_no_root(tmp_path: Path) -> None:
    folder = tmp_path / "bus/pci/devices/0000:00:01.0"
    folder.mkdir(parents=True)
    (folder / "class").write_text("0x020000")
    (folder / "numa_node").write_text("0")
    tree = SysfsTree(tmp_path, Remarks())
    assert read_pci_roots(tree, read_pci(tree, CPUS)) == ()
