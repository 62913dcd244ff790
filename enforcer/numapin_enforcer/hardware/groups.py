"""Pure: make disjoint groups of what each CPU says about its neighbours."""

from collections.abc import Mapping

from numapin_api.cpuset import CpuSet


def merge_groups(stated: Mapping[int, CpuSet]) -> tuple[list[CpuSet], CpuSet]:
    """Join the sets that have a CPU in common, until all are disjoint.

    Args:
        stated: for each CPU the CPUs that it says it shares something with; itself is added, CPUs
            without a statement of their own are dropped.

    Returns:
        The groups in the order of their lowest CPU, and the CPUs whose own statement is not the
        group they ended in: none where all of them agree, as they do on sound machines.
    """
    known = sum(1 << cpu for cpu in stated)
    own = {cpu: cpus.mask & known | 1 << cpu for cpu, cpus in stated.items()}
    groups: list[int] = []
    covered = 0
    for mask in dict.fromkeys(own.values()):
        if mask & covered:
            groups = _absorb(groups, mask)
        else:
            groups.append(mask)
        covered |= mask
    final = {mask: CpuSet.from_mask(mask) for mask in sorted(groups, key=lambda one: one & -one)}
    disagreeing = CpuSet(cpu for cpu, mask in own.items() if mask not in final)
    return list(final.values()), disagreeing


def _absorb(groups: list[int], mask: int) -> list[int]:
    apart = [group for group in groups if not group & mask]
    for group in groups:
        if group & mask:
            mask |= group
    return [*apart, mask]
