"""Which CPUs of a machine lie together, as bit masks computed once for each kind of machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Final
from weakref import WeakKeyDictionary

from numapin_api.cpuset import CpuSet
from numapin_api.topology import NO_CACHE, Cpu, Topology
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask, members, numa_mask, union

Units = Mapping[int, CpuMask]
"""Groups of one level: id of the group to the mask of its CPUs, lowest id first."""

_MODELS: Final = 64


@dataclass(frozen=True, eq=False)
class CpuGroups:
    """Which CPUs lie together: online CPUs only, and NUMA nodes that have any.

    A CPU with an unknown uncore cache belongs to a cache with its socket's number. Averages are
    rounded down, as in the kubelet.
    """

    numa_nodes: Units
    sockets: Units
    uncore_caches: Units
    cores: Units

    @cached_property
    def cpus(self) -> CpuMask:
        """Every CPU."""
        return union(self.numa_nodes.values())

    @cached_property
    def numa_first(self) -> bool:
        """True if NUMA nodes are the wider units: there are no more of them than sockets."""
        return len(self.sockets) >= len(self.numa_nodes)

    @cached_property
    def outer(self) -> Units:
        """The wider units."""
        return self.numa_nodes if self.numa_first else self.sockets

    @cached_property
    def inner(self) -> Units:
        """The narrower units."""
        return self.sockets if self.numa_first else self.numa_nodes

    @cached_property
    def cores_of(self) -> Mapping[int, tuple[tuple[int, CpuMask], ...]]:
        """The cores (number, mask) of each narrower unit."""
        return {
            unit: tuple((core, cpus) for core, cpus in self.cores.items() if cpus & mask)
            for unit, mask in self.inner.items()
        }

    @cached_property
    def cores_of_cache(self) -> Mapping[int, tuple[CpuMask, ...]]:
        """The masks of the cores of each uncore cache."""
        return {
            unit: tuple(cpus for cpus in self.cores.values() if cpus & mask)
            for unit, mask in self.uncore_caches.items()
        }

    @cached_property
    def sockets_of_numa_node(self) -> Mapping[int, frozenset[int]]:
        """The sockets that have CPUs in each NUMA node."""
        return {
            numa_node: frozenset(socket for socket, cpus in self.sockets.items() if cpus & mask)
            for numa_node, mask in self.numa_nodes.items()
        }

    @cached_property
    def threads(self) -> int:
        """Threads of the average core."""
        return self.cpus.bit_count() // len(self.cores)

    @cached_property
    def cpus_per_socket(self) -> int:
        """CPUs of the average socket."""
        return self.cpus.bit_count() // len(self.sockets)

    @cached_property
    def cpus_per_uncore_cache(self) -> int:
        """CPUs of the average uncore cache."""
        return self.cpus.bit_count() // len(self.uncore_caches)

    @cached_property
    def uniform(self) -> bool:
        """True if all cores have the same number of threads."""
        return len({mask.bit_count() for mask in self.cores.values()}) == 1

    @cached_property
    def smallest_numa_node(self) -> int:
        """CPUs of the smallest NUMA node."""
        return min(map(int.bit_count, self.numa_nodes.values()))

    @cached_property
    def smallest_socket(self) -> int:
        """CPUs of the smallest socket."""
        return min(map(int.bit_count, self.sockets.values()))

    @cached_property
    def smallest_core(self) -> int:
        """Threads of the smallest core."""
        return min(map(int.bit_count, self.cores.values()))

    @cached_property
    def in_one_numa_node(self) -> CpuMask:
        """The CPUs of cores whose threads are all in one NUMA node: all on a sound machine."""
        return union(core for core in self.cores.values() if _is_in_one(core, self.numa_nodes))

    @cached_property
    def cores_cross(self) -> bool:
        """True if the threads of a core are in several NUMA nodes."""
        return self.in_one_numa_node != self.cpus

    @cached_property
    def units_split_cores(self) -> bool:
        """True if the threads of a core are in several NUMA nodes, sockets or uncore caches."""
        return any(
            not _is_in_one(core, units)
            for units in (self.numa_nodes, self.sockets, self.uncore_caches)
            for core in self.cores.values()
        )

    @cached_property
    def sockets_cross(self) -> bool:
        """True if a NUMA node has parts of several sockets."""
        return any(
            node & socket and node & ~socket and socket & ~node
            for node in self.numa_nodes.values()
            for socket in self.sockets.values()
        )

    @cached_property
    def whole_capacities(self) -> tuple[int, ...]:
        """The most CPUs that 1, 2, .. NUMA nodes have together in cores that lie in one of them."""
        return _capacities(node & self.in_one_numa_node for node in self.numa_nodes.values())

    @cached_property
    def _cores_by_shape(self) -> Mapping[tuple[int, ...], CpuMask]:
        """The lowest CPUs of cores, by how far the core's other CPUs are from it."""
        shapes: dict[tuple[int, ...], int] = {}
        for core in self.cores.values():
            first, *others = members(core)
            shape = tuple(cpu - first for cpu in others)
            shapes[shape] = shapes.get(shape, 0) | 1 << first
        return {shape: CpuMask(lowest) for shape, lowest in shapes.items()}

    @cached_property
    def capacities(self) -> tuple[int, ...]:
        """The most CPUs that 1, 2, .. NUMA nodes have together."""
        return _capacities(self.numa_nodes.values())

    def numa_nodes_of(self, cpus: CpuMask) -> NumaMask:
        """The NUMA nodes that hold these CPUs."""
        return numa_mask(numa_node for numa_node, mask in self.numa_nodes.items() if mask & cpus)

    def cpus_in(self, numa_nodes: NumaMask) -> CpuMask:
        """The CPUs of these NUMA nodes."""
        if numa_nodes.bit_count() == 1:
            return self.numa_nodes.get(numa_nodes.bit_length() - 1, NO_CPUS)
        return union(self.numa_nodes.get(node, NO_CPUS) for node in members(numa_nodes))

    def sockets_in(self, numa_nodes: NumaMask) -> int:
        """How many sockets have CPUs in these NUMA nodes."""
        found: set[int] = set()
        for numa_node in members(numa_nodes):
            found |= self.sockets_of_numa_node.get(numa_node, frozenset())
        return len(found)

    def whole_cores(self, cpus: CpuMask) -> CpuMask:
        """The CPUs of the cores that are in the set with all their threads."""
        whole = 0
        for shape, lowest in self._cores_by_shape.items():
            first = lowest & int(cpus)
            for distance in shape:
                first &= cpus >> distance
            whole |= first
            for distance in shape:
                whole |= first << distance
        return CpuMask(whole)

    def with_siblings(self, cpus: CpuMask) -> CpuMask:
        """The CPUs and all threads that share a core with one of them."""
        return union(mask for mask in self.cores.values() if mask & cpus)


def _is_in_one(cpus: CpuMask, units: Units) -> bool:
    return any(not cpus & ~mask for mask in units.values())


def _capacities(numa_nodes: Iterable[CpuMask]) -> tuple[int, ...]:
    return tuple(accumulate(sorted(map(int.bit_count, numa_nodes), reverse=True)))


_GROUPS: Final[WeakKeyDictionary[Topology, CpuGroups]] = WeakKeyDictionary()
"""It keeps no topology: the nodes of a cluster do, as long as they report it."""


def cpu_groups_of(topology: Topology) -> CpuGroups:
    """The groups of a machine, shared with every machine that has the same CPUs."""
    groups = _GROUPS.get(topology)
    if groups is None:
        groups = _GROUPS[topology] = _build(topology.cpus)
    return groups


@lru_cache(maxsize=_MODELS)
def _build(cpus: tuple[Cpu, ...]) -> CpuGroups:
    return CpuGroups(
        numa_nodes=_units((cpu.numa_node, cpu.id) for cpu in cpus),
        sockets=_units((cpu.socket, cpu.id) for cpu in cpus),
        uncore_caches=_units((_cache(cpu), cpu.id) for cpu in cpus),
        cores=_units((cpu.core, cpu.id) for cpu in cpus),
    )


def _cache(cpu: Cpu) -> int:
    return cpu.socket if cpu.uncore_cache == NO_CACHE else cpu.uncore_cache


def _units(pairs: Iterable[tuple[int, int]]) -> dict[int, CpuMask]:
    return {unit: CpuMask(cpus.mask) for unit, cpus in CpuSet.grouped(pairs).items()}
