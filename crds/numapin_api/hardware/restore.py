"""The hardware that a node's status reports, as the Topology that it was made from."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.hardware.status import PciGroup, TopologyStatus
from numapin_api.hardware.status_consistency import check_topology
from numapin_api.topology import NO_CACHE, Cpu, DeviceName, NumaNode, PciDevice, PciRoot, Topology

MODELS: Final = 64
"""Models of machines whose CPUs are remembered."""

Units = tuple[tuple[int, CpuSet], ...]
"""Groups of CPUs of one level: the id of each, and its CPUs."""


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
        withheld=status.withheld or CpuSet(),
        names=tuple(map(_device_name, status.names or ())),
        pci_roots=tuple(map(_pci_root, status.pci_roots or ())),
    )


@lru_cache(maxsize=MODELS)
def _cpus(numa_nodes: Units, sockets: Units, caches: Units, cores: Units) -> tuple[Cpu, ...]:
    """The CPUs of a machine; machines of one model share them, for they are most of a topology."""
    socket_of, cache_of, core_of = _by_cpu(sockets), _by_cpu(caches), _by_cpu(cores)
    return tuple(
        Cpu(cpu, core_of.get(cpu, cpu), socket_of.get(cpu, 0), cache_of.get(cpu, NO_CACHE), numa)
        for cpu, numa in sorted(_by_cpu(numa_nodes).items())
    )


def _by_cpu(units: Units) -> dict[int, int]:
    return {cpu: unit for unit, cpus in units for cpu in cpus}


def _pci_devices(groups: Iterable[PciGroup]) -> Iterable[PciDevice]:
    for group in groups:
        for text in group.devices:
            address, _, pci_class = text.partition("/")
            yield PciDevice(address, pci_class, group.numa_node)


def _device_name(text: str) -> DeviceName:
    name, _, addresses = text.partition("=")
    return DeviceName(name, tuple(addresses.split(",")))


def _pci_root(text: str) -> PciRoot:
    name, _, numa_nodes = text.partition("=")
    return PciRoot(name, MemSet.parse(numa_nodes))
