"""Conversion of a node's hardware between a Topology and its compact form in a status."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.consistency import check_topology
from numapin_api.hardware.status import (
    MAX_BYTES,
    MAX_DEVICES,
    MAX_NODES_WITH_FREE_PAGES,
    MAX_PAGE_SIZES,
    MAX_WARNINGS,
    WARNING_LENGTH,
    CpuGroup,
    FreeHugepages,
    NumaNodeStatus,
    PciGroup,
    TopologyStatus,
)
from numapin_api.text import cut_text
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, PciDevice, Topology

MODELS: Final = 64
"""Models of machines whose CPUs are remembered."""

Units = tuple[tuple[int, CpuSet], ...]
"""Groups of CPUs of one level: the id of each, and its CPUs."""

LOCAL_CLASSES: Final = ("01", "02", "03", "0b", "0c06", "12")
"""PCI classes whose locality matters: storage, network, display, co-processors, InfiniBand,
accelerators. Source: the PCI Code and ID Assignment Specification."""

MAX_NODES_WITH_DISTANCES: Final = 64
"""With more NUMA nodes their distances alone would take most of a status."""


def compact_topology(topology: Topology) -> TopologyStatus:
    """The hardware as kernel lists, without PCI devices for which locality does not matter.

    What a status has no room for is left out; a warning says so.
    """
    known = {node.id: node for node in topology.numa_nodes}
    devices = [one for one in topology.pci if one.pci_class.startswith(LOCAL_CLASSES)]
    units = sorted(topology.numa_cpus.items())
    knows_distances = len(units) <= MAX_NODES_WITH_DISTANCES
    return TopologyStatus(
        numa_nodes=tuple(
            _numa_node(known.get(id_, NumaNode(id_, 0)), cpus, knows_distances=knows_distances)
            for id_, cpus in units
        ),
        sockets=_groups(topology.socket_cpus),
        uncore_caches=_groups(topology.uncore_cache_cpus),
        cores=tuple(cpus for cpus in topology.core_cpus.values() if len(cpus) > 1),
        offline=topology.offline,
        isolated=topology.isolated,
        pci=_pci_groups(devices[:MAX_DEVICES]),
        warnings=_warnings(topology.warnings, len(devices), knows_distances=knows_distances),
    )


def compact_free_hugepages(pages: Mapping[int, Mapping[str, int]]) -> tuple[FreeHugepages, ...]:
    """Free huge pages by NUMA node and size, of as many NUMA nodes as a status has room for."""
    return tuple(
        FreeHugepages(numa_node=node, pages=dict(islice(sizes.items(), MAX_PAGE_SIZES)))
        for node, sizes in islice(pages.items(), MAX_NODES_WITH_FREE_PAGES)
    )


def restore_topology(status: TopologyStatus) -> Topology:
    """The Topology that an enforcer reported.

    Raises:
        TopologyError: the report contradicts itself.
    """
    check_topology(status)
    return Topology(
        cpus=_cpus(
            tuple((node.id, node.cpus) for node in status.numa_nodes),
            tuple((group.id, group.cpus) for group in status.sockets),
            tuple((group.id, group.cpus) for group in status.uncore_caches),
            tuple((min(cpus), cpus) for cpus in status.cores if cpus),
        ),
        numa_nodes=tuple(
            NumaNode(
                id=node.id,
                memory_bytes=node.memory_bytes,
                hugepages=node.hugepages,
                distances=node.distances,
                on_device=bool(node.on_device),
            )
            for node in status.numa_nodes
        ),
        offline=status.offline,
        isolated=status.isolated,
        pci=tuple(_pci_devices(status.pci)),
        warnings=status.warnings,
    )


@lru_cache(maxsize=MODELS)
def _cpus(numa_nodes: Units, sockets: Units, caches: Units, cores: Units) -> tuple[Cpu, ...]:
    """The CPUs of a machine; machines of one model share them, for they are most of a topology."""
    socket_of, cache_of, core_of = _by_cpu(sockets), _by_cpu(caches), _by_cpu(cores)
    return tuple(
        Cpu(cpu, core_of.get(cpu, cpu), socket_of.get(cpu, 0), cache_of.get(cpu, NO_CACHE), numa)
        for cpu, numa in sorted(_by_cpu(numa_nodes).items())
    )


def _numa_node(node: NumaNode, cpus: CpuSet, *, knows_distances: bool) -> NumaNodeStatus:
    return NumaNodeStatus(
        id=node.id,
        cpus=cpus,
        memory_bytes=min(node.memory_bytes, MAX_BYTES),
        hugepages=dict(islice(node.hugepages.items(), MAX_PAGE_SIZES)),
        distances=node.distances if knows_distances else (),
        on_device=node.on_device or None,
    )


def _warnings(texts: Sequence[str], devices: int, *, knows_distances: bool) -> tuple[str, ...]:
    """The warnings of discovery, and what is left out of the status."""
    left_out = [] if knows_distances else ["too many NUMA nodes: distances are not reported"]
    if devices > MAX_DEVICES:
        left_out.append(f"too many PCI devices: {devices - MAX_DEVICES} are not reported")
    room = MAX_WARNINGS - len(left_out)
    if len(texts) > room:
        texts = [*texts[: room - 1], f"and {len(texts) - room + 1} more warnings"]
    return tuple(cut_text(text, WARNING_LENGTH) for text in (*left_out, *texts))


def _groups(units: Mapping[int, CpuSet]) -> tuple[CpuGroup, ...]:
    return tuple(CpuGroup(id=id_, cpus=cpus) for id_, cpus in units.items())


def _by_cpu(units: Units) -> dict[int, int]:
    return {cpu: unit for unit, cpus in units for cpu in cpus}


def _pci_groups(devices: Iterable[PciDevice]) -> tuple[PciGroup, ...]:
    groups: dict[int | None, list[str]] = {}
    for device in devices:
        groups.setdefault(device.numa_node, []).append(f"{device.address}/{device.pci_class}")
    placed = sorted(numa for numa in groups if numa is not None)
    order = [*placed, *(numa for numa in groups if numa is None)]
    return tuple(PciGroup(numa_node=numa, devices=tuple(groups[numa])) for numa in order)


def _pci_devices(groups: Iterable[PciGroup]) -> Iterable[PciDevice]:
    for group in groups:
        for text in group.devices:
            address, _, pci_class = text.partition("/")
            yield PciDevice(address, pci_class, group.numa_node)
