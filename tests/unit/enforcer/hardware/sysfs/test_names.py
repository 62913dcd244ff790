"""Names of network interfaces and disks, as the links of sysfs give them."""

import os
from pathlib import Path

import pytest

from numapin_api.topology import DeviceName
from numapin_enforcer.hardware.hotplug import Machine
from numapin_enforcer.hardware.sysfs.names import read_names
from numapin_enforcer.hardware.sysfs.remarks import Remarks
from numapin_enforcer.hardware.sysfs.sysfs_tree import SysfsTree

ROOT = "devices/pci0000:3a/0000:3a:00.0"
VIRTIO = "devices/pci0000:00/0000:00:03.0/virtio2"
CCISS = f"{ROOT}/0000:3b:00.0/cciss0/c0d0/block/cciss!c0d0"


def link(sysfs: Path, where: str, target: str) -> None:
    """Make a link as the kernel does: relative, to a folder that a capture may not have."""
    place = sysfs / where
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(os.path.relpath(sysfs / target, place.parent))


def named(sysfs: Path) -> dict[str, tuple[str, ...]]:
    return {one.name: one.pci for one in read_names(SysfsTree(sysfs, Remarks()))}


@pytest.mark.parametrize(
    ("where", "target", "pci"),
    [
        pytest.param("class/net/ens1f0", f"{ROOT}/0000:3b:00.0/net/ens1f0", "0000:3b:00.0"),
        pytest.param("class/net/eth0", f"{VIRTIO}/net/eth0", "0000:00:03.0"),
        pytest.param("block/vda", f"{VIRTIO}/block/vda", "0000:00:03.0"),
        pytest.param("block/nvme0n1", f"{ROOT}/0000:3d:00.0/nvme/nvme0/nvme0n1", "0000:3d:00.0"),
        pytest.param(
            "block/sda",
            "devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda",
            "0000:00:17.0",
        ),
        pytest.param(
            "block/nvme1n1",
            "devices/pci0000:c0/0000:c0:01.1/pci10000:c0/10000:c0:02.0/10000:c1:00.0/nvme/nvme1/nvme1n1",
            "10000:c1:00.0",
            id="behind Intel VMD",
        ),
        pytest.param("class/net/veth1a", "devices/virtual/net/veth1a", None),
        pytest.param("class/net/bond0", "devices/virtual/net/bond0", None),
        pytest.param("block/dm-0", "devices/virtual/block/dm-0", None),
        pytest.param("block/nvme0c1n1", f"{ROOT}/0000:3d:00.0/nvme/nvme0/nvme0c1n1", None),
        pytest.param("class/net/usb0", "devices/platform/soc/usb1/1-1/net/usb0", None),
        pytest.param("class/net/a=b", f"{ROOT}/0000:3b:00.0/net/a=b", None, id="odd: equals sign"),
        pytest.param("class/net/a,b", f"{ROOT}/0000:3b:00.0/net/a,b", None, id="odd: comma"),
        pytest.param("class/net/\x1b[2J", f"{ROOT}/0000:3b:00.0/net/x", None, id="odd: escape"),
        pytest.param("class/net/\udcff", f"{ROOT}/0000:3b:00.0/net/x", None, id="odd: no UTF-8"),
        pytest.param("class/net/" + "n" * 16, f"{ROOT}/0000:3b:00.0/net/x", None, id="too long"),
        pytest.param("class/net/eth\n", f"{ROOT}/0000:3b:00.0/net/x", None, id="odd: end of line"),
        pytest.param("block/cciss!c0d0", CCISS, "0000:3b:00.0"),
    ],
)
def test_a_device_is_that_of_the_last_pci_address_in_its_link(
    tmp_path: Path, where: str, target: str, pci: str | None
) -> None:
    link(tmp_path, where, target)
    name = where.removeprefix("class/")
    assert named(tmp_path) == ({name: (pci,)} if pci else {})


def test_virtual_functions_have_no_name_since_pods_take_them(tmp_path: Path) -> None:
    link(tmp_path, "class/net/ens1f0", f"{ROOT}/0000:3b:00.0/net/ens1f0")
    link(tmp_path, "class/net/ens1f0v0", f"{ROOT}/0000:3b:02.0/net/ens1f0v0")
    link(tmp_path, "bus/pci/devices/0000:3b:02.0", f"{ROOT}/0000:3b:02.0")
    (tmp_path / f"{ROOT}/0000:3b:02.0").mkdir(parents=True)
    link(tmp_path, f"{ROOT}/0000:3b:02.0/physfn", f"{ROOT}/0000:3b:00.0")
    assert named(tmp_path) == {"net/ens1f0": ("0000:3b:00.0",)}


def test_a_disk_with_nvme_multipath_is_on_the_functions_of_its_controllers(tmp_path: Path) -> None:
    subsystem = "devices/virtual/nvme-subsystem/nvme-subsys0"
    link(tmp_path, "block/nvme0n1", f"{subsystem}/nvme0n1")
    link(tmp_path, "block/nvme0c0n1", f"{ROOT}/0000:3d:00.0/nvme/nvme0/nvme0c0n1")
    for number, address in enumerate(("0000:3d:00.0", "0000:af:00.0", "0000:af:00.0")):
        link(tmp_path, f"{subsystem}/nvme{number}", f"{ROOT}/{address}/nvme/nvme{number}")
    (tmp_path / subsystem / "power").mkdir()
    assert named(tmp_path) == {"block/nvme0n1": ("0000:3d:00.0", "0000:af:00.0")}


def test_a_disk_over_fabrics_has_no_pci_function(tmp_path: Path) -> None:
    subsystem = "devices/virtual/nvme-subsystem/nvme-subsys1"
    link(tmp_path, "block/nvme1n1", f"{subsystem}/nvme1n1")
    link(tmp_path, f"{subsystem}/nvme4", "devices/virtual/nvme-fabrics/ctl/nvme4")
    assert named(tmp_path) == {}


def test_a_name_without_a_link_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "class/net/bonding_masters").mkdir(parents=True)
    (tmp_path / "block").write_text("")
    assert named(tmp_path) == {}


def test_a_nic_that_is_plugged_in_is_noticed_at_the_next_resync_and_a_veth_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "devices/system/cpu/cpu0").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/online").write_text("0\n")
    link(tmp_path, "class/net/veth1", "devices/virtual/net/veth1")
    machine = Machine(tmp_path, Path("/proc"))
    link(tmp_path, "class/net/veth2", "devices/virtual/net/veth2")
    assert not machine.rescan(pages=True)
    link(tmp_path, "class/net/ens1f0", f"{ROOT}/0000:3b:00.0/net/ens1f0")
    assert not machine.rescan()
    assert machine.rescan(pages=True)
    assert list(machine.topology.names) == [DeviceName("net/ens1f0", ("0000:3b:00.0",))]
    (tmp_path / "class/net/ens1f0").unlink()
    assert machine.rescan(pages=True)
    assert not machine.topology.names
