"""A node's hardware as the compact form that its status has.

Written without the models, which take 9 MiB of memory: the enforcer uses it on every node.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.limits import (
    MAX_BYTES,
    MAX_DEVICES,
    MAX_NAMES,
    MAX_NODES_WITH_FREE_PAGES,
    MAX_PAGE_SIZES,
    MAX_PCI_ROOTS,
    MAX_WARNINGS,
    WARNING_LENGTH,
)
from numapin_api.text import cut_text
from numapin_api.topology import NumaNode, PciDevice, Topology

LOCAL_CLASSES: Final = ("01", "02", "03", "0b", "0c06", "12")
"""PCI classes whose locality matters: storage, network, display, co-processors, InfiniBand,
accelerators. Source: the PCI Code and ID Assignment Specification."""

_CLASS_NAMES: Final = {
    "0106": "SATA",
    "0107": "SAS",
    "0108": "NVMe",
    "01": "storage",
    "0200": "Ethernet",
    "0207": "InfiniBand",
    "02": "network",
    "03": "display / GPU",
    "04": "multimedia",
    "05": "memory",
    "06": "bridge",
    "07": "communication",
    "08": "system",
    "0b40": "co-processor",
    "0b": "processor",
    "0c03": "USB",
    "0c06": "InfiniBand",
    "0c": "serial bus",
    "10": "encryption",
    "11": "signal processing",
    "12": "accelerator",
    "40": "co-processor",
}
"""Names of classes and base classes. Source: the PCI Code and ID Assignment Specification."""

MAX_NODES_WITH_DISTANCES: Final = 64
"""With more NUMA nodes their distances alone would take most of a status."""

Wire = dict[str, Any]


def compact_topology(topology: Topology) -> Wire:
    """A `TopologyStatus` as JSON values, without PCI devices for which locality does not matter.

    What a status has no room for is left out; a warning says so.
    """
    known = {node.id: node for node in topology.numa_nodes}
    devices = [one for one in topology.pci if one.pci_class.startswith(LOCAL_CLASSES)]
    units = sorted(topology.numa_cpus.items())
    knows_distances = len(units) <= MAX_NODES_WITH_DISTANCES
    status: Wire = {
        "numaNodes": [
            _numa_node(known.get(id_, NumaNode(id_, 0)), cpus, knows_distances=knows_distances)
            for id_, cpus in units
        ],
        "sockets": _groups(topology.socket_cpus),
        "uncoreCaches": _groups(topology.uncore_cache_cpus),
        "cores": [str(cpus) for cpus in topology.core_cpus.values() if len(cpus) > 1],
        "offline": str(topology.offline),
        "isolated": str(topology.isolated),
        "pci": _pci_groups(devices[:MAX_DEVICES]),
        "warnings": _warnings(topology, len(devices), knows_distances=knows_distances),
    }
    if topology.withheld:
        status["withheld"] = str(topology.withheld)
    if topology.names:
        names = topology.names[:MAX_NAMES]
        status["names"] = [f"{one.name}={','.join(one.pci)}" for one in names]
    if topology.pci_roots:
        roots = topology.pci_roots[:MAX_PCI_ROOTS]
        status["pciRoots"] = [f"{one.name}={one.numa_nodes}" for one in roots]
    return status


def compact_free_hugepages(pages: Mapping[int, Mapping[str, int]]) -> list[Wire]:
    """Free huge pages by NUMA node and size, of as many NUMA nodes as a status has room for.

    They are `FreeHugepages` as JSON values.
    """
    return [
        {"numaNode": node, "pages": dict(islice(sizes.items(), MAX_PAGE_SIZES))}
        for node, sizes in islice(pages.items(), MAX_NODES_WITH_FREE_PAGES)
    ]


def _numa_node(node: NumaNode, cpus: CpuSet, *, knows_distances: bool) -> Wire:
    status = {
        "id": node.id,
        "cpus": str(cpus),
        "memoryBytes": min(node.memory_bytes, MAX_BYTES),
        "hugepages": dict(islice(node.hugepages.items(), MAX_PAGE_SIZES)),
        "distances": list(node.distances) if knows_distances else [],
    }
    return status | ({"onDevice": True} if node.on_device else {})


def _warnings(topology: Topology, devices: int, *, knows_distances: bool) -> list[str]:
    """The warnings of discovery, and what is left out of the status."""
    texts: Sequence[str] = topology.warnings
    left_out = [] if knows_distances else ["too many NUMA nodes: distances are not reported"]
    if devices > MAX_DEVICES:
        left_out.append(f"too many PCI devices: {devices - MAX_DEVICES} are not reported")
    if len(topology.names) > MAX_NAMES:
        more = len(topology.names) - MAX_NAMES
        left_out.append(f"too many network interfaces and disks: {more} are not reported by name")
    if len(topology.pci_roots) > MAX_PCI_ROOTS:
        more = len(topology.pci_roots) - MAX_PCI_ROOTS
        left_out.append(f"too many PCI root complexes: {more} are not reported")
    room = MAX_WARNINGS - len(left_out)
    if len(texts) > room:
        texts = [*texts[: room - 1], f"and {len(texts) - room + 1} more warnings"]
    return [cut_text(text, WARNING_LENGTH) for text in (*left_out, *texts)]


def _groups(units: Mapping[int, CpuSet]) -> list[Wire]:
    return [{"id": id_, "cpus": str(cpus)} for id_, cpus in units.items()]


def _pci_groups(devices: Iterable[PciDevice]) -> list[Wire]:
    groups: dict[int | None, list[str]] = {}
    for device in devices:
        groups.setdefault(device.numa_node, []).append(f"{device.address}/{device.pci_class}")
    unplaced = groups.pop(None, None)
    placed = [{"numaNode": numa, "devices": found} for numa, found in sorted(groups.items())]
    return [*placed, {"devices": unplaced}] if unplaced else placed


def class_name(pci_class: str) -> str:
    """The name of the class, else of its base class, else the number."""
    return _CLASS_NAMES.get(pci_class) or _CLASS_NAMES.get(pci_class[:2]) or f"0x{pci_class}"
