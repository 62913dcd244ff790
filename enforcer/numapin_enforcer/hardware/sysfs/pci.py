"""PCI functions and the NUMA node that each is attached to, and the root complexes above them.

A link of `bus/pci/devices` begins with the root complex. Drivers of devices name it in the same way
(`resource.kubernetes.io/pcieRoot`), also for a device whose own bus is below another device (VMD).
Source: Documentation/ABI/testing/sysfs-bus-pci in the Linux source; Kubernetes v1.36,
dynamic-resource-allocation/deviceattribute, `resolvePCIeRoot`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.limits import MAX_ROOT_NODES, PCI_ADDRESS, PCI_ROOT
from numapin_api.topology import PciDevice, PciRoot
from numapin_enforcer.hardware.sysfs.sysfs_tree import SysfsTree

_DEVICES: Final = "bus/pci/devices"
_CLASS = re.compile(r"0x([0-9a-fA-F]{4})[0-9a-fA-F]{2}", re.ASCII)
_ADDRESS = re.compile(PCI_ADDRESS, re.ASCII)
_ROOT = re.compile(rf"/devices/({PCI_ROOT})/", re.ASCII)


def read_pci(tree: SysfsTree, numa_cpus: Mapping[int, CpuSet]) -> tuple[PciDevice, ...]:
    """Every PCI function by address; `numa_cpus` has the CPUs of each online NUMA node."""
    devices = []
    for address in tree.names(_DEVICES):
        if not _ADDRESS.fullmatch(address):
            continue
        folder = f"{_DEVICES}/{address}"
        pci_class = _CLASS.fullmatch(tree.text(f"{folder}/class") or "")
        if pci_class is None:
            tree.remarks.add(f"{folder}/class is not a PCI class: the device is ignored")
            continue
        devices.append(PciDevice(address, pci_class[1].lower(), _locate(tree, folder, numa_cpus)))
    return tuple(devices)


def read_pci_roots(tree: SysfsTree, devices: Iterable[PciDevice]) -> tuple[PciRoot, ...]:
    """The root complexes above these devices, by name; those without known NUMA nodes are not."""
    found: dict[str, set[int]] = {}
    for device in devices:
        root = _ROOT.search(tree.link(f"{_DEVICES}/{device.address}"))
        if root is not None and device.numa_node is not None:
            found.setdefault(root[1], set()).add(device.numa_node)
    return tuple(
        PciRoot(name, MemSet(nodes))
        for name, nodes in sorted(found.items())
        if len(nodes) <= MAX_ROOT_NODES
    )


def _locate(tree: SysfsTree, folder: str, numa_cpus: Mapping[int, CpuSet]) -> int | None:
    """The device's NUMA node: as stated, else the only one with all of its local CPUs."""
    stated = tree.number(f"{folder}/numa_node")
    if stated is not None and stated in numa_cpus:
        return stated
    online = CpuSet.from_mask(sum(cpus.mask for cpus in numa_cpus.values()))
    near = tree.cpus(f"{folder}/local_cpus", f"{folder}/local_cpulist", 0)
    near = (near or CpuSet()) & online
    holding = [node for node, cpus in numa_cpus.items() if near and near <= cpus]
    return holding[0] if len(holding) == 1 else None
