"""How a policy takes CPUs on one machine: the options of a CpuPolicy as one value."""

from dataclasses import dataclass
from enum import Enum

from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.cpumanager.distributed import take_distributed
from numapin_operator.placement.cpumanager.packed import Packing, take_packed
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.cpumanager.whole_cores import take_whole_cores
from numapin_operator.placement.errors import PlacementError, SmtAlignmentError
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask


class Method(Enum):
    """What chooses among free CPUs."""

    PACKED = "packed"
    DISTRIBUTED = "distributed"
    WHOLE_CORES = "whole cores"


@dataclass(frozen=True, slots=True)
class CpuTaker:
    """A policy's way to take CPUs. Source: Kubernetes v1.36, cpumanager, `takeByTopology`.

    `group_size` is how many CPUs a distributed take keeps together. With `align_by_socket` CPUs
    near a NUMA node are all those of its sockets.
    """

    cpu_groups: CpuGroups
    packing: Packing
    method: Method = Method.PACKED
    group_size: int = 1
    whole_cores_only: bool = False
    align_by_socket: bool = False

    def take(self, free: CpuMask, count: int) -> CpuMask:
        """Choose `count` of the free CPUs.

        Raises:
            NotEnoughCpusError: fewer are free.
            SmtAlignmentError: whole cores are required, and none of the free ones add up to it.
        """
        if self.method is Method.PACKED:
            return take_packed(self.cpu_groups, free, count, self.packing)
        if self.method is Method.DISTRIBUTED:
            return take_distributed(self.cpu_groups, free, count, self.group_size, self.packing)
        return take_whole_cores(self.cpu_groups, free, count, self.packing)

    def take_near(self, free: CpuMask, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        """Choose CPUs of these NUMA nodes first, then others; None for no preference.

        Raises as `take`. Source: Kubernetes v1.36, cpumanager, `allocateCPUs`.
        """
        if numa_nodes is None:
            return self.take(free, count)
        near = free & self.cpus_near(numa_nodes)
        taken = self.take(near, min(count, near.bit_count()))
        rest = count - taken.bit_count()
        return taken | self.take(free & ~taken, rest) if rest > 0 else taken

    def can_take(self, free: CpuMask, count: int, numa_nodes: NumaMask | None = None) -> bool:
        """Whether the free CPUs suffice, those of the NUMA nodes alone if any are given."""
        try:
            self.take(self.near(free, numa_nodes), count)
        except PlacementError:
            return False
        return True

    def near(self, free: CpuMask, numa_nodes: NumaMask | None) -> CpuMask:
        """The free CPUs of NUMA nodes, None for all; whole cores alone if the policy says so."""
        near = free if numa_nodes is None else free & self.cpus_near(numa_nodes)
        return self.cpu_groups.whole_cores(near) if self.whole_cores_only else near

    def check_whole_cores(self, pool: CpuPool, count: int) -> None:
        """Refuse a count that free whole cores cannot give; nothing happens if parts of cores do.

        On hybrid processors, whose cores differ in size, `take` finds out.
        Source: Kubernetes v1.36, cpumanager, `enforceSMTAlignment`.

        Raises:
            SmtAlignmentError: no multiple of a core's threads, or too few whole cores are free.
        """
        if not self.whole_cores_only or not self.cpu_groups.uniform:
            return
        threads, whole = self.cpu_groups.threads, pool.free_whole_cores.bit_count()
        if count % threads:
            raise SmtAlignmentError(
                f"wanted {count} CPUs, no multiple of the {threads} threads of a core"
            )
        if count > whole:
            free = self.cpu_groups.whole_cores(pool.free).bit_count()
            raise SmtAlignmentError(f"wanted {count} CPUs, {free} free in whole cores")

    def cpus_near(self, numa_nodes: NumaMask) -> CpuMask:
        """The CPUs of NUMA nodes; with `align_by_socket` those of their sockets."""
        cpus = self.cpu_groups.cpus_in(numa_nodes)
        if not self.align_by_socket:
            return cpus
        near = NO_CPUS
        for socket in self.cpu_groups.sockets.values():
            if socket & cpus:
                near |= socket
        return near
