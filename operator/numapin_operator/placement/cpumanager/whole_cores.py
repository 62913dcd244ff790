"""Whole cores on machines whose cores differ in size, or have threads in several other units."""

from collections.abc import Iterator

from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.cpumanager.distributed import take_distributed
from numapin_operator.placement.cpumanager.packed import Packing, sorted_inner, take_packed
from numapin_operator.placement.errors import SmtAlignmentError
from numapin_operator.placement.masks import NO_CPUS, CpuMask


def take_whole_cores(
    cpu_groups: CpuGroups, free: CpuMask, count: int, group: int, packing: Packing
) -> CpuMask:
    """Choose `count` CPUs that are all threads of their cores.

    The kubelet takes every core to have the average size and to be in one NUMA node, so that it
    gives out halves of other cores. Here the packed or distributed choice is used if it splits no
    core, of cores in one NUMA node if these suffice; otherwise cores are taken largest first, in
    packed order, as long as they fit.

    Args:
        cpu_groups: the machine; every CPU in `free` is in it.
        free: mask of the CPUs to choose from.
        count: CPUs wanted.
        group: how many CPUs of a distributed choice stay together; 0 for a packed one.
        packing: how to choose inside the levels.

    Raises:
        SmtAlignmentError: no choice of the free whole cores has this size.
    """
    whole = cpu_groups.whole_cores(free)
    if count > whole.bit_count():
        raise SmtAlignmentError(
            f"wanted {count} CPUs as whole cores, {whole.bit_count()} free in whole cores"
        )
    for cpus in _best_first(cpu_groups, whole, count):
        if group:
            chosen = take_distributed(cpu_groups, cpus, count, group, packing)
        else:
            chosen = take_packed(cpu_groups, cpus, count, packing)
        if cpu_groups.whole_cores(chosen) == chosen:
            return chosen
    return _largest_first(cpu_groups, whole, count)


def _best_first(cpu_groups: CpuGroups, whole: CpuMask, count: int) -> Iterator[CpuMask]:
    inside = whole & cpu_groups.in_one_numa_node
    if inside != whole and inside.bit_count() >= count:
        yield inside
    yield whole


def _largest_first(cpu_groups: CpuGroups, whole: CpuMask, count: int) -> CpuMask:
    ordered = [
        mask
        for _, unit, _ in sorted_inner(cpu_groups, whole)
        for _, mask in cpu_groups.cores_of[unit]
        if mask & whole
    ]
    taken = NO_CPUS
    inside = cpu_groups.in_one_numa_node
    for mask in sorted(ordered, key=lambda core: (-core.bit_count(), bool(core & ~inside))):
        if (taken | mask).bit_count() <= count:
            taken |= mask
    if taken.bit_count() != count:
        smallest = min(mask.bit_count() for mask in ordered)
        raise SmtAlignmentError(
            f"wanted {count} CPUs as whole cores; the smallest free core has {smallest} threads"
        )
    return taken
