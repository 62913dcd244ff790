"""Which free CPUs a request gets, packed as tightly as the machine's levels allow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups, Units
from numapin_operator.placement.errors import NotEnoughCpusError
from numapin_operator.placement.kubelet_quirks import NO_QUIRKS, KubeletQuirks
from numapin_operator.placement.masks import NO_CPUS, CpuMask, lowest

Cores = Sequence[tuple[int, CpuMask]]
"""Cores by number, each with the mask of its CPUs."""

Ranked = tuple[int, int, CpuMask]
"""Free CPUs in a unit, the unit's id and its mask: the sort key of units."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How CPUs are chosen inside the levels.

    Attributes:
        spread: take single CPUs of a socket by number instead of whole cores.
        uncore: try to stay in one uncore cache.
        one_socket: distributed CPUs stay in one socket where one has room.
        quirks: faults of the kubelet to repeat.
    """

    spread: bool = False
    uncore: bool = False
    one_socket: bool = False
    quirks: KubeletQuirks = NO_QUIRKS


PACKED = Packing()


def take_packed(
    cpu_groups: CpuGroups, free: CpuMask, count: int, packing: Packing = PACKED
) -> CpuMask:
    """Choose `count` CPUs, whole units before parts of units, tightest units first.

    Tries NUMA nodes and sockets (the wider first), then uncore caches if asked, then cores, then
    single CPUs. Among units of a level the one with least free CPUs comes first, then the lowest
    id. Source: Kubernetes v1.36, cpumanager, `takeByTopologyNUMAPacked`.

    Args:
        cpu_groups: the machine; every CPU in `free` is in it.
        free: mask of the CPUs to choose from.
        count: CPUs wanted.
        packing: how to choose inside the levels.

    Returns:
        The mask of `count` CPUs, all of them from `free` unless `counts_sockets_by_average`.

    Raises:
        NotEnoughCpusError: `free` holds fewer than `count`.
    """
    if count <= 0:
        return NO_CPUS
    if count > free.bit_count():
        raise NotEnoughCpusError(count, free.bit_count())
    taking = _CpuAccumulator(cpu_groups, free, count, packing)
    taking.take_whole_units()
    if taking.wanted and packing.uncore:
        taking.take_uncore_caches()
    if taking.wanted and not packing.spread:
        taking.take_cores()
    if taking.wanted:
        taking.take_cpus()
    return taking.taken


class _CpuAccumulator:
    """One request in progress. Source: Kubernetes v1.36, cpumanager, `cpuAccumulator`."""

    __slots__ = ("cpu_groups", "free", "packing", "taken", "wanted")

    def __init__(self, cpu_groups: CpuGroups, free: CpuMask, count: int, packing: Packing) -> None:
        self.cpu_groups, self.free, self.wanted, self.packing = cpu_groups, free, count, packing
        self.taken = NO_CPUS

    def take_whole_units(self) -> None:
        """Take NUMA nodes and sockets that are entirely free, the wider units first."""
        if self.cpu_groups.numa_first:
            self._take_numa_nodes()
            self._take_sockets()
        else:
            self._take_sockets()
            self._take_numa_nodes()

    def _take(self, cpus: CpuMask) -> None:
        self.taken |= cpus
        self.free &= ~cpus
        self.wanted -= cpus.bit_count()

    def _take_numa_nodes(self) -> None:
        if self.wanted < self.cpu_groups.smallest_numa_node:
            return
        for _, _, mask in list(sorted_numa_nodes(self.cpu_groups, self.free)):
            if self.free & mask == mask and self.wanted >= mask.bit_count():
                self._take(mask)

    def _take_sockets(self) -> None:
        if self.wanted < self.cpu_groups.smallest_socket:
            return
        for mask in self._free_sockets():
            if self.wanted >= mask.bit_count():
                self._take(mask)

    def _free_sockets(self) -> list[CpuMask]:
        """Sockets to take whole: free ones of average size. Source: cpumanager, `isSocketFree`."""
        average = self.cpu_groups.cpus_per_socket
        by_average = self.packing.quirks.counts_sockets_by_average
        return [
            mask
            for count, _, mask in sorted_sockets(self.cpu_groups, self.free)
            if count == average and (count == mask.bit_count() or by_average)
        ]

    def take_uncore_caches(self) -> None:
        """Take whole uncore caches, then the rest from a single cache if one can give it."""
        ranked = list(_sorted_uncore_caches(self.cpu_groups, self.free))
        if self.wanted >= self.cpu_groups.cpus_per_uncore_cache:
            for _, _, mask in ranked:
                if self.free & mask == mask and self.wanted >= mask.bit_count():
                    self._take(mask)
        for _, unit, _ in ranked:
            if self.wanted <= 0:
                return
            self._take_part_of_uncore_cache(unit)

    def _take_part_of_uncore_cache(self, unit: int) -> None:
        """Take the rest from this cache if its free cores can give all of it.

        For an odd count the last thread of the last core stays free.
        """
        threads = self.cpu_groups.threads
        cores_wanted = -(-self.wanted // threads)
        chosen = NO_CPUS
        cache = self.cpu_groups.uncore_caches[unit]
        for mask in self.cpu_groups.cores_of_cache[unit]:
            if mask & cache & self.free:
                chosen |= mask & self.free
                cores_wanted -= 1
                if not cores_wanted:
                    break
        if self.wanted % 2 and threads > 1 and chosen.bit_count() > self.wanted:
            chosen = lowest(chosen, chosen.bit_count() - 1)
        if chosen.bit_count() == self.wanted:
            self._take(chosen)

    def take_cores(self) -> None:
        """Take cores whose threads are all free."""
        smallest = self.cpu_groups.smallest_core
        for _, unit, _ in sorted_inner(self.cpu_groups, self.free):
            if self.wanted < smallest:
                return
            self._take_cores_of(self._smallest_first(self.cpu_groups.cores_of[unit]))

    def _take_cores_of(self, cores: Cores) -> None:
        free, wanted, taken = self.free, self.wanted, NO_CPUS
        for _, mask in cores:
            if free & mask == mask and (size := mask.bit_count()) <= wanted:
                taken |= mask
                wanted -= size
                if not wanted:
                    break
        self._take(taken)

    def _smallest_first(
        self, cores: Sequence[tuple[int, CpuMask]]
    ) -> Sequence[tuple[int, CpuMask]]:
        if self.cpu_groups.uniform:
            return cores
        return sorted(cores, key=lambda core: core[1].bit_count())

    def take_cpus(self) -> None:
        """Take single CPUs: parts of cores first, or with `spread` by number within a socket."""
        if self.packing.spread:
            for _, _, mask in list(sorted_sockets(self.cpu_groups, self.free)):
                self._take(lowest(mask & self.free, self.wanted))
            return
        for _, unit, _ in sorted_inner(self.cpu_groups, self.free):
            for _, _, mask in _ranked(dict(self.cpu_groups.cores_of[unit]), self.free):
                self._take(lowest(mask & self.free, self.wanted))
                if not self.wanted:
                    return


def sorted_outer(cpu_groups: CpuGroups, free: CpuMask) -> list[Ranked]:
    """The wider units that have free CPUs, tightest first."""
    return _ranked(cpu_groups.outer, free)


def sorted_inner(cpu_groups: CpuGroups, free: CpuMask) -> Iterator[Ranked]:
    """The narrower units that have free CPUs: unit by unit of the wider ones, tightest first."""
    seen: set[int] = set()
    for _, _, outer in sorted_outer(cpu_groups, free):
        within = {unit: mask for unit, mask in cpu_groups.inner.items() if mask & outer & free}
        for ranked in _ranked(within, free):
            if ranked[1] not in seen:
                seen.add(ranked[1])
                yield ranked


def sorted_numa_nodes(cpu_groups: CpuGroups, free: CpuMask) -> Iterator[Ranked]:
    """The NUMA nodes that have free CPUs, in the order in which they are taken."""
    if cpu_groups.numa_first:
        return iter(sorted_outer(cpu_groups, free))
    return sorted_inner(cpu_groups, free)


def sorted_sockets(cpu_groups: CpuGroups, free: CpuMask) -> Iterator[Ranked]:
    """The sockets that have free CPUs, in the order in which they are taken."""
    return (
        sorted_inner(cpu_groups, free)
        if cpu_groups.numa_first
        else iter(sorted_outer(cpu_groups, free))
    )


def _sorted_uncore_caches(cpu_groups: CpuGroups, free: CpuMask) -> Iterator[Ranked]:
    for _, _, numa_node in sorted_numa_nodes(cpu_groups, free):
        caches = {unit: m for unit, m in cpu_groups.uncore_caches.items() if m & numa_node & free}
        yield from _ranked(caches, free)


def _ranked(units: Units, free: CpuMask) -> list[Ranked]:
    ranked = [
        (count, unit, mask) for unit, mask in units.items() if (count := (mask & free).bit_count())
    ]
    ranked.sort()
    return ranked
