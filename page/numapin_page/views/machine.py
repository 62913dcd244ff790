"""A machine as boxes in boxes: sockets, NUMA nodes, L3 caches and cores, and its devices.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.compact import LOCAL_CLASSES, class_name
from numapin_api.quantity import format_bytes, plural
from numapin_api.topology import DeviceName, NumaNode, PciDevice, Topology

Json = dict[str, Any]

_DEVICES: Final = 12
"""Devices of a kind that are named; of the others there is a count."""


def machine(topology: Topology) -> Json:
    """The whole machine; a core is the list of its threads."""
    bare = [node for node in topology.numa_nodes if not topology.numa_cpus[node.id]]
    return {
        "summary": _summary(topology),
        "boxes": list(_boxes(topology)),
        "memoryOnly": [_memory_only(topology, node) for node in bare],
        "distances": [
            {"id": node.id, "to": list(node.distances)}
            for node in (topology.numa_nodes if len(topology.numa_nodes) > 1 else ())
        ],
        "devices": list(_devices(topology.pci, topology.names)),
        "odd": {
            name: str(cpus)
            for name, cpus in (
                ("offline", topology.offline),
                ("isolated", topology.isolated),
                ("withheld", topology.withheld),
            )
            if cpus
        },
        "warnings": list(topology.warnings),
    }


def _summary(topology: Topology) -> str:
    cpus, cores = len(topology.online), len(topology.core_cpus)
    parts = [plural(cpus, "CPU")]
    if cores != cpus:
        parts[0] += f" on {plural(cores, 'core')}"
    parts += [
        plural(len(topology.socket_cpus), "socket"),
        plural(len(topology.numa_nodes), "NUMA node"),
        format_bytes(sum(node.memory_bytes for node in topology.numa_nodes if not node.on_device)),
    ]
    return ", ".join(parts)


def _boxes(topology: Topology) -> Iterator[Json]:
    """A box for each socket with its NUMA nodes, or for each NUMA node with its sockets.

    Sockets are outside where no NUMA node is in two of them, which is the rule on today's machines.
    """
    sockets = topology.socket_cpus
    nodes = [node for node in topology.numa_nodes if topology.numa_cpus[node.id]]
    if all(any(topology.numa_cpus[node.id] <= cpus for cpus in sockets.values()) for node in nodes):
        for number, cpus in sockets.items():
            inside = [node for node in nodes if topology.numa_cpus[node.id] <= cpus]
            yield _box("socket", number, [_numa_box(topology, node) for node in inside])
    else:
        for node in nodes:
            there = topology.numa_cpus[node.id]
            parts = [
                _box("socket", number, _caches(topology, cpus & there))
                for number, cpus in sockets.items()
                if not cpus.isdisjoint(there)
            ]
            yield _box("numa", node.id, parts) | _amounts(node)


def _box(kind: str, number: int, inside: Sequence[Json]) -> Json:
    return {"kind": kind, "id": number, "boxes": list(inside)}


def _numa_box(topology: Topology, node: NumaNode) -> Json:
    caches = _caches(topology, topology.numa_cpus[node.id])
    return _box("numa", node.id, caches) | _amounts(node)


def _amounts(node: NumaNode) -> Json:
    pages = [f"{number} x {size}" for size, number in node.hugepages.items() if number]
    return {"memory": format_bytes(node.memory_bytes), "hugepages": " + ".join(pages)}


def _caches(topology: Topology, cpus: CpuSet) -> list[Json]:
    """A box for each L3 that is near these CPUs, and one for CPUs without."""
    boxes, rest = list[Json](), cpus
    for number, shared in topology.uncore_cache_cpus.items():
        if not shared.isdisjoint(cpus):
            boxes.append(_cores("cache", number, topology, shared & cpus))
            rest -= shared
    if rest:
        boxes.append(_cores("cores", -1, topology, rest))
    return boxes


def _cores(kind: str, number: int, topology: Topology, cpus: CpuSet) -> Json:
    cores = (core & cpus for core in topology.core_cpus.values())
    return {"kind": kind, "id": number, "cores": [sorted(core) for core in cores if core]}


def _memory_only(topology: Topology, node: NumaNode) -> Json:
    """A NUMA node without CPUs, and the nearest ones that have some."""
    others = zip(topology.numa_nodes, node.distances, strict=bool(node.distances))
    far = [(distance, other.id) for other, distance in others if topology.numa_cpus[other.id]]
    shortest = min((distance for distance, _ in far), default=0)
    nearest = [number for distance, number in far if distance == shortest]
    return {"id": node.id, "onDevice": node.on_device, "near": nearest} | _amounts(node)


def _devices(devices: Iterable[PciDevice], names: Iterable[DeviceName]) -> Iterator[Json]:
    """The devices whose locality matters, by NUMA node and kind; those with a name first."""
    named: dict[str, list[str]] = {}
    for one in names:
        for address in one.pci:
            named.setdefault(address, []).append(one.name)
    groups: dict[tuple[int | None, str], list[str]] = {}
    for device in devices:
        if device.pci_class.startswith(LOCAL_CLASSES):
            key = device.numa_node, class_name(device.pci_class)
            groups.setdefault(key, []).append(device.address)
    for node, kind in sorted(groups, key=lambda one: (one[0] is None, one[0] or 0, one[1])):
        addresses = groups[node, kind]
        shown = sorted(addresses, key=lambda one: (one not in named, one))[:_DEVICES]
        yield {
            "numaNode": node,
            "kind": kind,
            "count": len(addresses),
            "named": [_label(one, named) for one in shown],
        }


def _label(address: str, named: Mapping[str, Sequence[str]]) -> str:
    return " ".join([address, *named.get(address, ())])
