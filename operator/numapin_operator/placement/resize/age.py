"""In which order a container got its CPUs, and which of them it keeps when it shrinks."""

from collections.abc import Callable, Iterator, Sequence

from numapin_api.nodeassignment import MAX_GRANTS
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.masks import NO_CPUS, CpuMask, members

Grants = tuple[CpuMask, ...]
"""The CPUs of a container in the order in which it got them, several at a time."""


def grants_of(cpus: CpuMask, recorded: Grants) -> Grants:
    """What a container has, by age; CPUs that no grant names count as the youngest."""
    left, found = cpus, list[CpuMask]()
    for grant in (*recorded, cpus):
        if mine := grant & left:
            found.append(mine)
            left &= ~mine
    if len(found) > MAX_GRANTS:
        younger = NO_CPUS
        for grant in found[MAX_GRANTS - 1 :]:
            younger |= grant
        found[MAX_GRANTS - 1 :] = [younger]
    return tuple(found)


def keep_oldest(
    cpu_groups: CpuGroups, cpus: CpuMask, grants: Grants, count: int, *, whole_cores: bool
) -> CpuMask:
    """The CPUs that a container keeps when it shrinks to `count`: those that it got first.

    Of those that it got together, the NUMA node and the core of the lowest CPU come first: a
    program such as DPDK has its main thread there.

    Args:
        cpu_groups: the machine.
        cpus: what the container has.
        grants: the same by age.
        count: how many it keeps, at least 1 and at most as many as it has.
        whole_cores: give whole cores back only. It keeps more than `count` then if no whole cores
            add up to that.
    """
    kept = NO_CPUS
    for cpu in _oldest_first(cpu_groups, cpus, grants):
        if kept.bit_count() >= count:
            break
        core = cpu_groups.with_siblings(cpu) & cpus if whole_cores else cpu
        kept |= core
    return kept


def _oldest_first(cpu_groups: CpuGroups, cpus: CpuMask, grants: Grants) -> Iterator[CpuMask]:
    rank = _rank(cpu_groups, cpus)
    for grant in grants_of(cpus, grants):
        for cpu in sorted(members(grant), key=rank):
            yield CpuMask(1 << cpu)


def _rank(cpu_groups: CpuGroups, cpus: CpuMask) -> Callable[[int], tuple[int, int, int]]:
    """Sort key of a container's CPUs: its NUMA node and core by their lowest CPU, then itself."""
    node = _lowest_of_unit(tuple(cpu_groups.numa_nodes.values()), cpus)
    core = _lowest_of_unit(tuple(cpu_groups.cores.values()), cpus)
    return lambda cpu: (node.get(cpu, cpu), core.get(cpu, cpu), cpu)


def _lowest_of_unit(units: Sequence[CpuMask], cpus: CpuMask) -> dict[int, int]:
    lowest: dict[int, int] = {}
    for unit in units:
        mine = list(members(unit & cpus))
        lowest |= dict.fromkeys(mine, mine[0] if mine else 0)
    return lowest
