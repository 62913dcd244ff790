"""One pod's CPUs while it is placed. Source: Kubernetes v1.36, cpumanager, static policy."""

from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.text import cut_text
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.cpumanager.take import CpuTaker
from numapin_operator.placement.errors import NotEnoughCpusError, SharedPoolEmptyError
from numapin_operator.placement.kubelet_quirks import KubeletQuirks
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask

_LONGEST_LIST: Final = 160
"""Characters of a list of CPUs in a message."""


class PodCpus:
    """What the containers of one pod have taken out of the pool so far.

    Attributes:
        claimed: what was taken so far.
        reusable: CPUs that ordinary init containers leave to the containers after them.
    """

    def __init__(self, taker: CpuTaker, pool: CpuPool, quirks: KubeletQuirks) -> None:
        self._taker, self._pool, self._quirks = taker, pool, quirks
        self._of: dict[str, CpuMask] = {}
        self.claimed = NO_CPUS
        self.reusable = NO_CPUS

    @property
    def free(self) -> CpuMask:
        """CPUs of the pool that may be given out."""
        return self._pool.free

    def of(self, container: str) -> CpuMask:
        """The CPUs of a container; none if it has none of its own."""
        return self._of.get(container, NO_CPUS)

    def allocate(
        self, container: str, count: int, numa_nodes: NumaMask | None, *, is_init: bool
    ) -> None:
        """Give a container CPUs of its own, those of init containers included.

        Raises:
            PlacementError: they are not there, or nothing would be left for the shared pool.
        """
        self._taker.check_whole_cores(self._pool, count)
        cpus = self._take(self._pool.free | self.reusable, count, numa_nodes)
        self._of[container] = cpus
        self.reusable = self.reusable | cpus if is_init else self.reusable & ~cpus

    def allocate_pod(self, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        """Give the pod CPUs as a whole; raises as `allocate`."""
        self._taker.check_whole_cores(self._pool, count)
        return self._take(self._pool.free, count, numa_nodes)

    def take_from(self, free: CpuMask, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        """Take some of these free CPUs out of the pool, those of the NUMA nodes first.

        Raises as `allocate`.
        """
        return self._take(free, count, numa_nodes)

    def release(self, cpus: CpuMask) -> None:
        """Return some of the pod's CPUs."""
        self._pool.release(cpus)

    def forget(self) -> None:
        """Keep whatever was taken so far even if the pod is refused."""
        self.claimed = NO_CPUS

    def undo(self) -> None:
        """Return whatever was taken."""
        self._pool.release(self.claimed)

    def _choose(self, free: CpuMask, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        """CPUs that are never shared if they suffice, else others, else the former and others.

        The kernel does not balance the threads of a container between the two kinds.
        """
        never_shared = free & self._pool.exclusive_only
        if not never_shared:
            return self._taker.take_near(free, count, numa_nodes)
        others = free & ~never_shared
        if self._taker.can_take(never_shared, count, numa_nodes):
            return self._taker.take_near(never_shared, count, numa_nodes)
        empties = others.bit_count() == count and not self._pool.shared & ~others
        if self._taker.can_take(others, count, numa_nodes) and not empties:
            return self._taker.take_near(others, count, numa_nodes)
        first = self._taker.near(never_shared, numa_nodes)
        rest = count - first.bit_count()
        if rest <= 0:  # cores of several sizes: what is never shared has none that add up
            return self._taker.take_near(free, count, numa_nodes)
        return first | self._taker.take_near(free & ~first, rest, numa_nodes)

    def _take(self, free: CpuMask, count: int, numa_nodes: NumaMask | None) -> CpuMask:
        if count > free.bit_count() and not self._quirks.counts_free_cpus_last:
            listed = f": {cut_text(str(CpuSet.from_mask(free)), _LONGEST_LIST)}" if free else ""
            raise NotEnoughCpusError(count, free.bit_count(), listed)
        cpus = self._choose(free, count, numa_nodes)
        if not self._pool.shared & ~cpus and not self._quirks.empties_shared_pool:
            raise SharedPoolEmptyError(
                f"giving away {CpuSet.from_mask(cpus)} would leave no CPU in the shared pool"
            )
        self._pool.claim(cpus)
        self.claimed |= cpus
        return cpus
