"""What pods and containers have been given on a node."""

from collections.abc import Iterable
from typing import NamedTuple

from numapin_api.cpuset import CpuSet, MemSet
from numapin_operator.placement.masks import NO_CPUS, NO_NUMA_NODES, CpuMask, NumaMask, members


class Block(NamedTuple):
    """Memory or huge pages bound on some NUMA nodes together."""

    numa_nodes: NumaMask
    resource: str
    size_bytes: int

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The NUMA nodes by number."""
        return tuple(members(self.numa_nodes))


class DeviceGrant(NamedTuple):
    """Devices of one resource."""

    resource: str
    ids: tuple[str, ...]


class ContainerAllocation(NamedTuple):
    """What one container got; `mems` are the NUMA nodes of its memory.

    `exclusive` is False if it shares its CPUs with other containers of its pod. `grants` are its
    CPUs in the order in which it got them; empty if it was never resized.
    """

    name: str
    cpus: CpuMask = NO_CPUS
    mems: NumaMask = NO_NUMA_NODES
    memory: tuple[Block, ...] = ()
    exclusive: bool = True
    grants: tuple[CpuMask, ...] = ()
    devices: tuple[DeviceGrant, ...] = ()

    @property
    def cpu_set(self) -> CpuSet:
        """What goes in `cpuset.cpus`."""
        return CpuSet.from_mask(self.cpus)

    @property
    def mem_set(self) -> MemSet:
        """What goes in `cpuset.mems`."""
        return MemSet.from_mask(self.mems)


class PodAllocation(NamedTuple):
    """What one pod got; `pod_level` is set if CPUs and memory were given to the pod as a whole."""

    uid: str
    namespace: str
    pod: str
    containers: tuple[ContainerAllocation, ...] = ()
    pod_level: ContainerAllocation | None = None

    @property
    def cpus(self) -> CpuMask:
        """Every CPU of the pod."""
        return self.pod_level.cpus if self.pod_level else cpus_of(self.containers)

    @property
    def memory(self) -> tuple[Block, ...]:
        """Every block of memory that is accounted to the pod."""
        if self.pod_level:
            return self.pod_level.memory
        return tuple(block for container in self.containers for block in container.memory)

    @property
    def devices(self) -> tuple[DeviceGrant, ...]:
        """The devices of its containers; one that is used twice is listed twice."""
        return tuple(grant for container in self.containers for grant in container.devices)


def mems_of(blocks: Iterable[Block]) -> NumaMask:
    """Every NUMA node that holds some of these blocks."""
    joined = NO_NUMA_NODES
    for block in blocks:
        joined |= block.numa_nodes
    return joined


def cpus_of(containers: Iterable[ContainerAllocation]) -> CpuMask:
    """Every CPU of these containers."""
    joined = NO_CPUS
    for container in containers:
        joined |= container.cpus
    return joined
