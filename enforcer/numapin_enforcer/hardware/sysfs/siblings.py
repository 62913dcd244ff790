"""Groups of CPUs that list each other in their topology folders."""

from collections.abc import Mapping
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.hardware.sysfs.sysfs_tree import CPU_FOLDER, SysfsTree

TOPOLOGY: Final = f"{CPU_FOLDER}/cpu{{}}/topology"


def read_siblings(tree: SysfsTree, cpus: CpuSet, *names: str) -> dict[int, CpuSet]:
    """The siblings that each CPU's file lists; the file has an older and a newer name."""
    listed = {}
    for cpu in cpus:
        for name in names:
            read = tree.cpus(f"{TOPOLOGY}/{name}", f"{TOPOLOGY}/{name}_list", cpu)
            if read:
                listed[cpu] = read
                break
    return listed


def merge_groups(listed: Mapping[int, CpuSet]) -> tuple[list[CpuSet], CpuSet]:
    """Join sets with a common CPU until all sets are disjoint.

    Args:
        listed: for each CPU the siblings that its file lists; the CPU itself is added, and
            siblings that are no key are dropped.

    Returns:
        The groups in the order of their lowest CPU, and the CPUs whose own list differs from
        their group: none on a machine without firmware faults.
    """
    known = sum(1 << cpu for cpu in listed)
    own = {cpu: cpus.mask & known | 1 << cpu for cpu, cpus in listed.items()}
    groups: list[int] = []
    covered = 0
    for mask in dict.fromkeys(own.values()):
        if mask & covered:
            groups = _absorb(groups, mask)
        else:
            groups.append(mask)
        covered |= mask
    final = {mask: CpuSet.from_mask(mask) for mask in sorted(groups, key=lambda one: one & -one)}
    conflicting = CpuSet(cpu for cpu, mask in own.items() if mask not in final)
    return list(final.values()), conflicting


def _absorb(groups: list[int], mask: int) -> list[int]:
    apart = [group for group in groups if not group & mask]
    for group in groups:
        if group & mask:
            mask |= group
    return [*apart, mask]
