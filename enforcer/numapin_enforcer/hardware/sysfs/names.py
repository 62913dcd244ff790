"""Names of network interfaces and disks, and the PCI functions that they belong to.

A link of `class/net` or `block` names every device between the root of a bus and the interface or
disk. The last PCI address in it is the device's own: a virtio device or a SCSI target is below it.
Interfaces and disks without one (veth, bridges, loop devices, device-mapper) are left out, and so
are the virtual functions of a NIC, whose interfaces come and go with pods.
Source: Documentation/ABI/testing/sysfs-class-net and sysfs-block in the Linux source.
"""

import re
from collections.abc import Iterator
from typing import Final

from numapin_api.hardware.limits import DEVICE_NAME, MAX_PATHS, PCI_ADDRESS
from numapin_api.topology import DeviceName
from numapin_enforcer.hardware.sysfs.sysfs_tree import SysfsTree

_NET: Final = "class/net"
_BLOCK: Final = "block"
_PCI: Final = "bus/pci/devices"

_IN_LINK = re.compile(rf"(?<=/){PCI_ADDRESS}(?=/)", re.ASCII)
_WRITABLE = re.compile(DEVICE_NAME, re.ASCII)
_SUBSYSTEM = re.compile(r"devices/virtual/nvme-subsystem/nvme-subsys[0-9]{1,5}(?=/)", re.ASCII)
_CONTROLLER = re.compile(r"nvme[0-9]{1,5}", re.ASCII)
_HIDDEN_PATH = re.compile(r"nvme[0-9]+c[0-9]+n[0-9]+", re.ASCII)
"""A single path of a disk with NVMe multipath: no device that can be opened."""


def read_names(tree: SysfsTree) -> tuple[DeviceName, ...]:
    """Every network interface and disk on a PCI bus, by name; names with odd characters are not."""
    found = (*_interfaces(tree), *_disks(tree))
    return tuple(
        one for one in found if one.pci and _WRITABLE.fullmatch(f"{one.name}={','.join(one.pci)}")
    )


def _interfaces(tree: SysfsTree) -> Iterator[DeviceName]:
    for name in tree.names(_NET):
        pci = _addresses(tree.link(f"{_NET}/{name}"))
        if not any(tree.link(f"{_PCI}/{address}/physfn") for address in pci):
            yield DeviceName(f"net/{name}", pci)


def _disks(tree: SysfsTree) -> Iterator[DeviceName]:
    for name in tree.names(_BLOCK):
        link = tree.link(f"{_BLOCK}/{name}")
        if not _HIDDEN_PATH.fullmatch(name):
            yield DeviceName(f"block/{name}", _addresses(link) or _of_subsystem(tree, link))


def _addresses(link: str) -> tuple[str, ...]:
    return tuple(_IN_LINK.findall(link)[-1:])


def _of_subsystem(tree: SysfsTree, link: str) -> tuple[str, ...]:
    """The PCI functions of the controllers of a disk with NVMe multipath.

    Source: nvme_mpath_alloc_disk and nvme_init_subsystem in the Linux source.
    """
    subsystem = _SUBSYSTEM.search(link)
    if subsystem is None:
        return ()
    folder = subsystem[0]
    controllers = filter(_CONTROLLER.fullmatch, tree.names(folder))
    found = (pci for one in controllers for pci in _addresses(tree.link(f"{folder}/{one}")))
    return tuple(sorted(dict.fromkeys(found)))[:MAX_PATHS]
