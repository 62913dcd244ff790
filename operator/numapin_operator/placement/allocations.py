"""Allocations: what each pod has on a node, and what is left for others."""

from collections.abc import Iterable
from typing import NamedTuple

from numapin_api.cpuset import CpuSet, MemSet
from numapin_operator.placement.masks import members
from numapin_operator.placement.policy import NodePolicy


class Block(NamedTuple):
    """Memory bound on some NUMA nodes (a mask) together."""

    numa_nodes: int
    resource: str
    size_bytes: int

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The NUMA nodes by number."""
        return tuple(members(self.numa_nodes))


class ContainerAllocation(NamedTuple):
    """What one container got: masks of CPUs and NUMA nodes, and its memory.

    `exclusive` is False where it shares its CPUs with other containers of its pod.
    """

    name: str
    cpus: int = 0
    mems: int = 0
    memory: tuple[Block, ...] = ()
    exclusive: bool = True

    @property
    def cpu_set(self) -> CpuSet:
        """The CPUs as others see them."""
        return CpuSet.from_mask(self.cpus)

    @property
    def mem_set(self) -> MemSet:
        """The NUMA nodes as others see them."""
        return MemSet.from_mask(self.mems)


class PodAllocation(NamedTuple):
    """What one pod has. `whole` is set where CPUs and memory were given to the pod as a whole."""

    uid: str
    namespace: str
    pod: str
    containers: tuple[ContainerAllocation, ...] = ()
    whole: ContainerAllocation | None = None

    @property
    def cpus(self) -> int:
        """Every CPU of the pod."""
        return self.whole.cpus if self.whole else cpus_of(self.containers)

    @property
    def memory(self) -> tuple[Block, ...]:
        """Every block of memory that is accounted to the pod."""
        if self.whole:
            return self.whole.memory
        return tuple(block for container in self.containers for block in container.memory)


def mems_of(blocks: Iterable[Block]) -> int:
    """Every NUMA node that holds some of these blocks."""
    joined = 0
    for block in blocks:
        joined |= block.numa_nodes
    return joined


def cpus_of(containers: Iterable[ContainerAllocation]) -> int:
    """Every CPU of these containers."""
    joined = 0
    for container in containers:
        joined |= container.cpus
    return joined


class CpuPool:
    """The CPUs of one node that no container owns."""

    __slots__ = ("_policy", "_reserved", "shared")

    def __init__(self, policy: NodePolicy) -> None:
        self._policy, self._reserved = policy, policy.reserved
        self.shared = policy.everyone

    @property
    def free(self) -> int:
        """CPUs that may be given out: shared and not reserved."""
        return self.shared & ~self._reserved

    @property
    def free_whole_cores(self) -> int:
        """CPUs of cores that no reserved CPU is part of."""
        return self.shared & ~self._policy.reserved_cores

    def claim(self, cpus: int) -> None:
        """Take CPUs out of the shared pool."""
        self.shared &= ~cpus

    def release(self, cpus: int) -> None:
        """Return CPUs; strictly reserved ones and those this machine lacks stay out."""
        self.shared |= cpus if self._policy.as_kubelet else cpus & self._policy.everyone
