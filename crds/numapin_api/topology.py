"""One node's hardware as values: its CPUs, NUMA nodes and PCI devices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet

NO_CACHE: Final = -1
"""The uncore cache of a CPU whose cache is unknown; its socket is used instead, as in the
kubelet."""

LOCAL_DISTANCE: Final = 10
REMOTE_DISTANCE: Final = 20
"""The kernel's defaults if firmware has no distance table. Source: linux/topology.h."""

_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti")


def page_size_name(size_bytes: int) -> str:
    """The name of a huge page size, as in `hugepages-2Mi`: in the largest whole unit.

    Source: k8s.io/apimachinery resource.Quantity, canonical form of BinarySI.
    """
    power = 0
    while size_bytes and size_bytes % 1024 == 0 and power + 1 < len(_BINARY_SUFFIXES):
        size_bytes, power = size_bytes // 1024, power + 1
    return f"{size_bytes}{_BINARY_SUFFIXES[power]}"


def page_size_bytes(name: str) -> int:
    """The size in bytes of a page size name such as `2Mi`.

    Raises:
        ValueError: the name is not a positive whole number with a suffix up to `Ti`.
    """
    digits = name.rstrip("KMGTi")
    suffix = name[len(digits) :]
    if not (digits.isascii() and digits.isdigit() and int(digits) and suffix in _BINARY_SUFFIXES):
        raise ValueError(f"{name!r} is not a page size; write it like 2Mi or 1Gi")
    return int(digits) << 10 * _BINARY_SUFFIXES.index(suffix)


def default_distances(count: int) -> tuple[tuple[int, ...], ...]:
    """The distance rows of `count` NUMA nodes if firmware gives none."""
    return tuple(
        tuple(LOCAL_DISTANCE if row == column else REMOTE_DISTANCE for column in range(count))
        for row in range(count)
    )


@dataclass(frozen=True, slots=True)
class Cpu:
    """One online logical CPU and its groups.

    `core` is the lowest CPU number among its sibling threads; `uncore_cache` is `NO_CACHE` if no
    shared L3 is known.
    """

    id: int
    core: int
    socket: int
    uncore_cache: int
    numa_node: int


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One online memory domain; it may lack memory or CPUs.

    `hugepages` maps a page size such as `2Mi` to the number of pages. `distances` are in the order
    of `Topology.numa_nodes`, and empty if unknown. `on_device` is true if the memory belongs to a
    device such as a GPU, whose driver allocates it.
    """

    id: int
    memory_bytes: int
    hugepages: Mapping[str, int] = field(default_factory=dict)
    distances: tuple[int, ...] = ()
    on_device: bool = False


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI function; `numa_node` is None if it is unknown.

    `pci_class` is the base class and subclass as four hexadecimal digits, such as `0200`.
    """

    address: str
    pci_class: str
    numa_node: int | None


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A network interface or a disk, such as `net/ens1f0` or `block/nvme0n1`.

    `pci` are the addresses of its PCI functions; a disk with several paths has several of them.
    """

    name: str
    pci: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PciRoot:
    """A PCI root complex, such as `pci0000:3a`, and the NUMA nodes of the devices below it."""

    name: str
    numa_nodes: MemSet


@dataclass(frozen=True)
class Topology:
    """One machine: its online CPUs and its online NUMA nodes, each by ascending id.

    `withheld` are online CPUs that the node's pods may not use; they are not in `cpus`. `names` are
    those of devices on a PCI bus. `pci_roots` are those whose NUMA nodes are known.
    """

    cpus: tuple[Cpu, ...]
    numa_nodes: tuple[NumaNode, ...]
    offline: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()
    pci: tuple[PciDevice, ...] = ()
    warnings: tuple[str, ...] = ()
    withheld: CpuSet = CpuSet()
    names: tuple[DeviceName, ...] = ()
    pci_roots: tuple[PciRoot, ...] = ()

    @cached_property
    def _hash(self) -> int:
        sizes = tuple((node.id, node.memory_bytes, node.distances) for node in self.numa_nodes)
        others = (self.offline, self.isolated, self.pci, self.names, self.warnings, self.withheld)
        return hash((self.cpus, sizes, *others, self.pci_roots))

    def __hash__(self) -> int:
        """Computed once: a topology has hundreds of CPUs, and results are cached by topology."""
        return self._hash

    @cached_property
    def online(self) -> CpuSet:
        """Every online CPU that pods may use."""
        return CpuSet(cpu.id for cpu in self.cpus)

    @cached_property
    def mems(self) -> MemSet:
        """The online NUMA nodes with memory that containers may use."""
        return MemSet(
            node.id for node in self.numa_nodes if node.memory_bytes > 0 and not node.on_device
        )

    @cached_property
    def device_nodes(self) -> MemSet:
        """The online NUMA nodes whose memory belongs to a device; containers never get it."""
        return MemSet(node.id for node in self.numa_nodes if node.on_device)

    @cached_property
    def mems_without_cpus(self) -> MemSet:
        """Of `mems` those without online CPUs, such as CXL and high-bandwidth memory."""
        return self.mems - MemSet(node for node, cpus in self.numa_cpus.items() if cpus)

    @cached_property
    def numa_cpus(self) -> Mapping[int, CpuSet]:
        """The CPUs of each NUMA node; the set is empty for a node without CPUs."""
        groups = CpuSet.grouped((cpu.numa_node, cpu.id) for cpu in self.cpus)
        return {node.id: groups.get(node.id, CpuSet()) for node in self.numa_nodes} | groups

    @cached_property
    def socket_cpus(self) -> Mapping[int, CpuSet]:
        """The CPUs of each socket."""
        return CpuSet.grouped((cpu.socket, cpu.id) for cpu in self.cpus)

    @cached_property
    def uncore_cache_cpus(self) -> Mapping[int, CpuSet]:
        """The CPUs of each known uncore cache."""
        known = (cpu for cpu in self.cpus if cpu.uncore_cache != NO_CACHE)
        return CpuSet.grouped((cpu.uncore_cache, cpu.id) for cpu in known)

    @cached_property
    def core_cpus(self) -> Mapping[int, CpuSet]:
        """The sibling threads of each core."""
        return CpuSet.grouped((cpu.core, cpu.id) for cpu in self.cpus)
