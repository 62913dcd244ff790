"""Layout: a machine's groups of CPUs as bit masks, computed once for each kind of machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

from numapin_api.topology import NO_CACHE, Cpu, Topology
from numapin_operator.placement.bits import mask_of, members

Units = Mapping[int, int]
"""Groups of one level: id of the group to the mask of its CPUs, lowest id first."""

_REMEMBERED: Final = 16384


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which CPUs lie together. Only online CPUs count, and NUMA nodes that have some.

    `outer` and `inner` are NUMA nodes and sockets, whichever of them is wider first: sockets
    where there are fewer of them than NUMA nodes. `cores_of` lists the cores (id, mask) of each
    inner unit, `cores_of_cache` the masks of the cores of each uncore cache. A CPU whose uncore
    cache is not known counts to a cache with its socket's number. The per-unit sizes are averages
    rounded down, as the kubelet has them; `uniform` tells whether all cores have the same number
    of threads. `capacities` are the most CPUs that 1, 2, .. NUMA nodes have together.
    """

    cpus: int
    numa_nodes: Units
    sockets: Units
    uncore_caches: Units
    cores: Units
    numa_first: bool
    outer: Units
    inner: Units
    cores_of: Mapping[int, tuple[tuple[int, int], ...]]
    cores_of_cache: Mapping[int, tuple[int, ...]]
    numa_node_of: Mapping[int, int]
    sockets_of_numa_node: Mapping[int, frozenset[int]]
    threads: int
    cpus_per_socket: int
    cpus_per_uncore_cache: int
    uniform: bool
    smallest_numa_node: int
    smallest_socket: int
    smallest_core: int
    capacities: tuple[int, ...]

    def numa_mask(self, cpus: int) -> int:
        """The NUMA nodes that hold these CPUs."""
        return mask_of(node for node, mask in self.numa_nodes.items() if mask & cpus)

    def cpus_in(self, numa_nodes: int) -> int:
        """The CPUs of these NUMA nodes."""
        if numa_nodes & (numa_nodes - 1) == 0:
            return self.numa_nodes.get(numa_nodes.bit_length() - 1, 0)
        found = 0
        for node in members(numa_nodes):
            found |= self.numa_nodes.get(node, 0)
        return found

    def sockets_in(self, numa_nodes: int) -> int:
        """How many sockets have CPUs in these NUMA nodes."""
        found: set[int] = set()
        for node in members(numa_nodes):
            found |= self.sockets_of_numa_node.get(node, frozenset())
        return len(found)

    def whole_cores(self, cpus: int) -> int:
        """Those of the CPUs whose cores are in the set with all their threads."""
        kept = 0
        for mask in self.cores.values():
            if mask & cpus == mask:
                kept |= mask
        return kept

    def with_siblings(self, cpus: int) -> int:
        """The CPUs and all threads that share a core with one of them."""
        return _union(mask for mask in self.cores.values() if mask & cpus)


_layouts: dict[int, tuple[Topology, Layout]] = {}


def layout_of(topology: Topology) -> Layout:
    """The layout of a machine; remembered for the very object, and shared by equal machines."""
    known = _layouts.get(id(topology))
    if known is not None and known[0] is topology:
        return known[1]
    if len(_layouts) >= _REMEMBERED:
        _layouts.clear()
    layout = _build(topology.cpus)
    _layouts[id(topology)] = topology, layout
    return layout


@lru_cache(maxsize=256)
def _build(cpus: tuple[Cpu, ...]) -> Layout:
    numa_nodes = _units((cpu.numa_node, cpu.id) for cpu in cpus)
    sockets = _units((cpu.socket, cpu.id) for cpu in cpus)
    caches = _units(
        (cpu.socket if cpu.uncore_cache == NO_CACHE else cpu.uncore_cache, cpu.id) for cpu in cpus
    )
    cores = _units((cpu.core, cpu.id) for cpu in cpus)
    numa_first = len(sockets) >= len(numa_nodes)
    inner = sockets if numa_first else numa_nodes
    return Layout(
        cpus=_union(numa_nodes.values()),
        numa_nodes=numa_nodes,
        sockets=sockets,
        uncore_caches=caches,
        cores=cores,
        numa_first=numa_first,
        outer=numa_nodes if numa_first else sockets,
        inner=inner,
        cores_of={
            unit: tuple((core, cpu) for core, cpu in cores.items() if cpu & mask)
            for unit, mask in inner.items()
        },
        cores_of_cache={
            unit: tuple(cpu for cpu in cores.values() if cpu & mask)
            for unit, mask in caches.items()
        },
        numa_node_of={cpu.id: cpu.numa_node for cpu in cpus},
        sockets_of_numa_node={
            node: frozenset(socket for socket, cpus_there in sockets.items() if cpus_there & mask)
            for node, mask in numa_nodes.items()
        },
        threads=len(cpus) // len(cores),
        cpus_per_socket=len(cpus) // len(sockets),
        cpus_per_uncore_cache=len(cpus) // len(caches),
        uniform=len({mask.bit_count() for mask in cores.values()}) == 1,
        smallest_numa_node=min(map(int.bit_count, numa_nodes.values())),
        smallest_socket=min(map(int.bit_count, sockets.values())),
        smallest_core=min(map(int.bit_count, cores.values())),
        capacities=tuple(accumulate(sorted(map(int.bit_count, numa_nodes.values()), reverse=True))),
    )


def _units(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    masks: dict[int, int] = {}
    for unit, cpu in pairs:
        masks[unit] = masks.get(unit, 0) | 1 << cpu
    return dict(sorted(masks.items()))


def _union(masks: Iterable[int]) -> int:
    joined = 0
    for mask in masks:
        joined |= mask
    return joined
