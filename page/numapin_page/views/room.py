"""What is free on the NUMA nodes of one node, and how many pods of which size fit there.

Counts CPUs alone: a pod may find too little memory, or the wrong device, where its CPUs fit.
Does no I/O.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Topology

SIZES: Final = (1, 2, 4, 8, 16, 32, 64)
"""CPUs of the pods that are counted."""


@dataclass(frozen=True, slots=True)
class Room:
    """One NUMA node with CPUs.

    Attributes:
        numa_node: its number.
        allocatable: the CPUs that are not reserved.
        free: those of them that an exclusive container can get now.
    """

    numa_node: int
    allocatable: CpuSet
    free: CpuSet


def rooms(spec: NodeAssignmentSpec, topology: Topology, *, whole_cores: bool) -> list[Room]:
    """The NUMA nodes that have CPUs; none if the node's CPUs are not divided.

    Args:
        spec: what was decided for the node.
        topology: its hardware.
        whole_cores: whether a CPU whose core is not free can be given to nobody, as with
            `options.fullPCPUsOnly`.
    """
    pools = spec.pools
    if pools is None:
        return []
    allocatable = topology.online - pools.reserved
    free = allocatable - spec.exclusive_cpus
    return [
        Room(number, cpus & allocatable, _given(topology, free, pools.shared, cpus, whole_cores))
        for number, cpus in topology.numa_cpus.items()
        if cpus
    ]


def _given(
    topology: Topology,
    free: CpuSet,
    shared: CpuSet,
    there: CpuSet,
    whole_cores: bool,
) -> CpuSet:
    """What can be given of one NUMA node: never the last CPU of the shared pool."""
    left = free & there
    if left and shared <= there:
        left -= CpuSet([min(shared)])
    if not whole_cores:
        return left
    cores = (core for core in topology.core_cpus.values() if core <= left)
    return CpuSet(cpu for core in cores for cpu in core)


def fitting(rooms: Iterable[Room]) -> list[int]:
    """For each of `SIZES`, how many pods of that many CPUs fit, each on one NUMA node."""
    free = [len(one.free) for one in rooms]
    return [sum(count // size for count in free) for size in SIZES]


def is_full(rooms: Sequence[Room]) -> bool:
    """Whether not even one CPU can be given."""
    return not any(one.free for one in rooms)


def is_fragmented(rooms: Sequence[Room]) -> bool:
    """Whether what is free would hold a pod twice as large as any that fits on one NUMA node.

    A pod that no NUMA node could hold if it were empty does not count.
    """
    free = [len(one.free) for one in rooms]
    largest = max((len(one.allocatable) for one in rooms), default=0)
    return bool(free) and min(sum(free), largest) >= 2 * max(free) > 0
