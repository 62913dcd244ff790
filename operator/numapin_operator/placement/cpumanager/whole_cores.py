"""Whole cores on machines whose cores differ in their number of threads (hybrid processors)."""

from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.cpumanager.packed import Packing, sorted_inner, take_packed
from numapin_operator.placement.errors import SmtAlignmentError
from numapin_operator.placement.masks import NO_CPUS, CpuMask


def take_whole_cores(cpu_groups: CpuGroups, free: CpuMask, count: int, packing: Packing) -> CpuMask:
    """Choose `count` CPUs that are all threads of their cores.

    The kubelet takes every core to have the average size, so that on a hybrid processor it gives
    out halves of cores. Here the packed choice is used if it splits no core; otherwise cores are
    taken largest first, in packed order, as long as they fit.

    Raises:
        SmtAlignmentError: no choice of the free whole cores has this size.
    """
    whole = cpu_groups.whole_cores(free)
    if count > whole.bit_count():
        raise SmtAlignmentError(
            f"wanted {count} CPUs as whole cores, {whole.bit_count()} free in whole cores"
        )
    packed = take_packed(cpu_groups, whole, count, packing)
    if cpu_groups.whole_cores(packed) == packed:
        return packed
    return _largest_first(cpu_groups, whole, count)


def _largest_first(cpu_groups: CpuGroups, whole: CpuMask, count: int) -> CpuMask:
    ordered = [
        mask
        for _, unit, _ in sorted_inner(cpu_groups, whole)
        for _, mask in cpu_groups.cores_of[unit]
        if mask & whole
    ]
    taken = NO_CPUS
    for mask in sorted(ordered, key=int.bit_count, reverse=True):
        if (taken | mask).bit_count() <= count:
            taken |= mask
    if taken.bit_count() != count:
        smallest = min(mask.bit_count() for mask in ordered)
        raise SmtAlignmentError(
            f"wanted {count} CPUs as whole cores; the smallest free core has {smallest} threads"
        )
    return taken
