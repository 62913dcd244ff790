"""Sockets (packages) from sysfs.

The number of a package is unique on most machines. On s390x it is that of a socket in its book, and
the number of a book is that in its drawer. Partitions of POWER machines may have no number.
Source: Documentation/ABI/stable/sysfs-devices-system-cpu in the Linux source.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.limits import MAX_GROUP_ID
from numapin_enforcer.hardware.sysfs.siblings import TOPOLOGY, merge_groups, read_siblings
from numapin_enforcer.hardware.sysfs.sysfs_tree import CPU_FOLDER, SysfsTree

_LEVELS: Final = ("physical_package_id", "book_id", "drawer_id")
_SIBLINGS: Final = ("core_siblings", "package_cpus")

_Place = tuple[int | None, ...]
"""The numbers of a package, its book and its drawer; None for a level that is not there."""


def read_sockets(
    tree: SysfsTree, online: CpuSet, threads: Mapping[int, CpuSet], numa_nodes: Mapping[int, int]
) -> dict[int, CpuSet]:
    """The CPUs of each socket, by ascending number; each online CPU is in one.

    Args:
        tree: the machine.
        online: its online CPUs.
        threads: the siblings that CPUs list in their core.
        numa_nodes: the NUMA node of each CPU that one lists.
    """
    known = _read_numbers(tree, online)
    unknown = online - CpuSet(known)
    if not unknown:
        sockets = CpuSet.grouped((socket, cpu) for cpu, socket in known.items())
        _compare_siblings(tree, sockets, threads)
        return sockets
    listed = _informative(read_siblings(tree, online, *_SIBLINGS), threads)
    silent = unknown - CpuSet(listed)
    if unknown - silent:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology/physical_package_id is absent or negative, or alone"
            " without book_id or drawer_id: the socket is derived from core_siblings",
            *(unknown - silent),
        )
    if silent:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology/physical_package_id is absent or negative, and"
            " core_siblings is absent or has no more than a core: those of one NUMA node are"
            " treated as one socket",
            *silent,
        )
    beside = CpuSet.grouped((numa_nodes.get(cpu, -1), cpu) for cpu in silent)
    listed |= {cpu: cpus | threads.get(cpu, CpuSet()) for cpus in beside.values() for cpu in cpus}
    groups, _ = merge_groups({cpu: listed.get(cpu, CpuSet()) for cpu in online})
    return CpuSet.grouped(_sockets_of_cpus(groups, known))


def _read_numbers(tree: SysfsTree, online: CpuSet) -> dict[int, int]:
    """The socket of each CPU of which all levels are known that the machine has.

    It has the kernel's number if this is unique and a status can have it.
    """
    places = {cpu: _read_place(tree, cpu) for cpu in online}
    levels = {at for place in places.values() for at, one in enumerate(place) if one is not None}
    complete = {
        cpu: place
        for cpu, place in places.items()
        if all(place[at] is not None for at in {0, *levels})
    }
    different = dict.fromkeys(complete.values())
    packages = [place[0] for place in different if place[0] is not None]
    if len(set(packages)) == len(packages) and max(packages, default=0) <= MAX_GROUP_ID:
        numbers = dict(zip(different, packages, strict=True))
    else:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology/physical_package_id is not unique, or too large:"
            " sockets are told apart by book_id and drawer_id too, and numbered in the order of"
            " their CPUs",
            *complete,
        )
        numbers = {place: number for number, place in enumerate(different)}
    return {cpu: numbers[place] for cpu, place in complete.items()}


def _read_place(tree: SysfsTree, cpu: int) -> _Place:
    read = (tree.number(f"{TOPOLOGY}/{name}", cpu) for name in _LEVELS)
    return tuple(None if number is None or number < 0 else number for number in read)


def _informative(siblings: dict[int, CpuSet], threads: Mapping[int, CpuSet]) -> dict[int, CpuSet]:
    """The siblings in a socket; none if no CPU lists more than those in its core."""
    cores = {cpu: threads.get(cpu, CpuSet()) | CpuSet([cpu]) for cpu in siblings}
    return siblings if any(cpus - cores[cpu] for cpu, cpus in siblings.items()) else {}


def _compare_siblings(
    tree: SysfsTree, sockets: Mapping[int, CpuSet], threads: Mapping[int, CpuSet]
) -> None:
    """Remark on sockets whose lowest CPU lists other siblings, if these say anything."""
    online = CpuSet.union(sockets.values())
    lowest = {next(iter(cpus)): cpus for cpus in sockets.values()}
    listed = _informative(read_siblings(tree, CpuSet(lowest), *_SIBLINGS), threads)
    differing = [
        lowest[cpu] for cpu, siblings in listed.items() if siblings & online != lowest[cpu]
    ]
    if differing:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology: core_siblings differs from the CPUs with the same"
            " physical_package_id: the latter are treated as one socket",
            *CpuSet.union(differing),
        )


def _sockets_of_cpus(
    groups: Iterable[CpuSet], known: Mapping[int, int]
) -> Iterable[tuple[int, int]]:
    """Pairs of a socket's number and a CPU in it.

    A CPU whose socket is not known is in the known socket of its group with the lowest CPU. A group
    without a known socket is a socket with the lowest unused number.
    """
    used = set(known.values())
    for group in groups:
        fallback = next((known[cpu] for cpu in group if cpu in known), None)
        if fallback is None:
            fallback = min(set(range(len(used) + 1)) - used)
            used.add(fallback)
        for cpu in group:
            yield known.get(cpu, fallback), cpu
