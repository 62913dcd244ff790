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

    Attributes:
        cpu_groups: the machine.
        packing: how CPUs are chosen inside the levels.
        method: what chooses among free CPUs.
        group_size: how many CPUs a distributed take keeps together.
        whole_cores_only: containers get whole cores.
        align_by_socket: CPUs near a NUMA node are all those of its sockets.
        distributes_cores: whole cores come from several NUMA nodes in even shares, if that splits
            none.
    """

    cpu_groups: CpuGroups
    packing: Packing
    method: Method = Method.PACKED
    group_size: int = 1
    whole_cores_only: bool = False
    align_by_socket: bool = False
    distributes_cores: bool = False

    @property
    def keeps_cores_whole(self) -> bool:
        """Whether only whole cores are counted and taken; the kubelet checks their number alone."""
        return self.whole_cores_only and not self.packing.quirks.splits_cores

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
        group = self.group_size if self.distributes_cores else 0
        return take_whole_cores(self.cpu_groups, free, count, group, self.packing)

    def take_any(self, free: CpuMask, count: int) -> CpuMask:
        """Choose as `take` does, and parts of cores where no whole ones add up to `count`.

        For the reservation: the shared pool may have the other threads of its cores.

        Raises:
            NotEnoughCpusError: fewer are free.
        """
        try:
            return self.take(free, count)
        except SmtAlignmentError:
            return take_packed(self.cpu_groups, free, count, self.packing)

    def take_near(self, free: CpuMask, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        """Choose CPUs of these NUMA nodes first, then others; None for no preference.

        Raises as `take`. Source: Kubernetes v1.36, cpumanager, `allocateCPUs`.
        """
        if self.keeps_cores_whole:
            return self._take_whole_near(free, count, numa_nodes)
        if numa_nodes is None:
            return self.take(free, count)
        near = self._nearest(free, count, numa_nodes)
        taken = self.take(near, min(count, near.bit_count()))
        rest = count - taken.bit_count()
        return taken | self.take(free & ~taken, rest) if rest > 0 else taken

    def _take_whole_near(self, free: CpuMask, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        free = self.cpu_groups.whole_cores(free)
        if count > free.bit_count():
            raise SmtAlignmentError(f"wanted {count} CPUs, {free.bit_count()} free in whole cores")
        if numa_nodes is None:
            return self.take(free, count)
        near = self.cpu_groups.whole_cores(self._nearest(free, count, numa_nodes))
        if near.bit_count() >= count:
            return self.take(near, count)
        try:
            taken = self.take(near, near.bit_count())
            return taken | self.take(free & ~taken, count - taken.bit_count())
        except SmtAlignmentError:  # cores of several sizes
            return self.take(free, count)

    def _nearest(self, free: CpuMask, count: int, numa_nodes: NumaMask) -> CpuMask:
        """The free CPUs of NUMA nodes, or of their sockets.

        Where NUMA nodes have parts of several sockets, CPUs are near in one of these, else in the
        NUMA nodes, if they suffice. Of several sockets it is the one with most of what is wanted in
        the NUMA nodes, then the fullest.
        """
        near = free & self.cpus_near(numa_nodes)
        everywhere = self.packing.quirks.aligns_to_all_sockets or not self.cpu_groups.sockets_cross
        if not self.align_by_socket or everywhere:
            return near
        inside = self.cpu_groups.cpus_in(numa_nodes)
        sockets = [near & socket for socket in self.cpu_groups.sockets.values()]
        with_room = [one for one in sockets if self._usable(one).bit_count() >= count]
        if with_room:
            return min(
                with_room,
                key=lambda one: (-min(count, (one & inside).bit_count()), one.bit_count()),
            )
        return near & inside if self._usable(near & inside).bit_count() >= count else near

    def _usable(self, cpus: CpuMask) -> CpuMask:
        return self.cpu_groups.whole_cores(cpus) if self.keeps_cores_whole else cpus

    def countable(self, free: CpuMask) -> CpuMask:
        """Those of the free CPUs that count when NUMA nodes are chosen: in any that has them.

        A core whose threads are in several NUMA nodes is whole in none of them.
        """
        if not self.keeps_cores_whole:
            return free
        whole = self.cpu_groups.whole_cores(free)
        return whole if self.align_by_socket else whole & self.cpu_groups.in_one_numa_node

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

    @property
    def capacities(self) -> tuple[int, ...]:
        """The most CPUs that 1, 2, .. NUMA nodes of the empty machine can give together."""
        whole = self.keeps_cores_whole and not self.align_by_socket
        return self.cpu_groups.whole_capacities if whole else self.cpu_groups.capacities

    def check_whole_cores(self, pool: CpuPool, count: int) -> None:
        """Refuse a count that free whole cores cannot give; nothing happens if parts of cores do.

        On hybrid processors, whose cores differ in size, `take` finds out.
        Source: Kubernetes v1.36, cpumanager, `enforceSMTAlignment`.

        Raises:
            SmtAlignmentError: no multiple of a core's threads, or too few whole cores are free.
        """
        if not self.whole_cores_only or not self.cpu_groups.uniform:
            return
        threads, free = self.cpu_groups.threads, self.cpu_groups.whole_cores(pool.free).bit_count()
        whole = free if self.keeps_cores_whole else pool.free_whole_cores.bit_count()
        if count % threads:
            raise SmtAlignmentError(
                f"wanted {count} CPUs, no multiple of the {threads} threads of a core"
            )
        if count > whole:
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
