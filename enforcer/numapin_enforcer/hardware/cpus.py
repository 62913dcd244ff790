"""CPUs, cores, sockets and shared caches from sysfs.

Source: Documentation/ABI/stable/sysfs-devices-system-cpu in the Linux source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.hardware.sysfs_tree import CPU_FOLDER, SysfsTree

_TOPOLOGY: Final = f"{CPU_FOLDER}/cpu{{}}/topology"
_CACHE: Final = f"{CPU_FOLDER}/cpu{{}}/cache"

_L3_INDEXES: Final = (3, 2, 4, 1, 0)
"""Numbers of the cache folders that can hold the L3, the usual one first."""


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """The CPUs of one machine and their groups.

    `sockets` and `uncore_caches` map a number to CPUs; every online CPU is in one core and one
    socket, but only those with a known L3 are in an uncore cache.
    """

    online: CpuSet
    offline: CpuSet
    isolated: CpuSet
    cores: tuple[CpuSet, ...]
    sockets: Mapping[int, CpuSet]
    uncore_caches: Mapping[int, CpuSet]


def read_cpus(tree: SysfsTree) -> CpuFacts:
    """Read all facts about the CPUs; `online` is empty if there are none."""
    known = tree.numbered(CPU_FOLDER, "cpu")
    online = _read_online(tree, known)
    isolated = tree.ids(f"{CPU_FOLDER}/isolated") or CpuSet()
    return CpuFacts(
        online=online,
        offline=known - online,
        isolated=isolated & known,
        cores=tuple(_read_cores(tree, online)),
        sockets=_read_sockets(tree, online),
        uncore_caches=_read_uncore_caches(tree, online),
    )


def _read_online(tree: SysfsTree, known: CpuSet) -> CpuSet:
    listed = tree.ids(f"{CPU_FOLDER}/online")
    if listed:
        missing = listed - known
        if missing:
            tree.remarks.add(
                f"{CPU_FOLDER}/cpu[{{}}] does not exist but is listed as online:"
                " treated as offline",
                *missing,
            )
        return listed & known
    # Kernels without CPU hotplug have neither the list nor a file for each CPU.
    return CpuSet(cpu for cpu in known if tree.number(f"{CPU_FOLDER}/cpu{{}}/online", cpu) != 0)


def _read_cores(tree: SysfsTree, online: CpuSet) -> list[CpuSet]:
    listed = _siblings(tree, online, ("thread_siblings", "core_cpus"))
    unlisted = online - CpuSet(listed)
    if unlisted:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology has no thread_siblings: treated as a core of its own"
            " unless a sibling lists it",
            *unlisted,
        )
    cores, conflicting = merge_groups({cpu: listed.get(cpu, CpuSet()) for cpu in online})
    if conflicting - unlisted:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology/thread_siblings differs from that of its siblings:"
            " all CPUs that list each other are treated as one core",
            *(conflicting - unlisted),
        )
    return cores


def _read_sockets(tree: SysfsTree, online: CpuSet) -> dict[int, CpuSet]:
    ids = {cpu: tree.number(f"{_TOPOLOGY}/physical_package_id", cpu) for cpu in online}
    known = {cpu: id_ for cpu, id_ in ids.items() if id_ is not None and id_ >= 0}
    unknown = online - CpuSet(known)
    if not unknown:
        return CpuSet.grouped((socket, cpu) for cpu, socket in known.items())
    listed = _siblings(tree, online, ("core_siblings", "package_cpus"))
    unlisted = online - CpuSet(listed)
    tree.remarks.add(
        f"{CPU_FOLDER}/cpu[{{}}]/topology/physical_package_id is absent or negative: the socket is"
        " derived from core_siblings, and CPUs without these are treated as one socket",
        *unknown,
    )
    groups, _ = merge_groups({cpu: listed.get(cpu, unlisted) for cpu in online})
    return CpuSet.grouped(_sockets_of_cpus(groups, known))


def _sockets_of_cpus(
    groups: Iterable[CpuSet], known: Mapping[int, int]
) -> Iterable[tuple[int, int]]:
    """Pairs of a socket's id and a CPU in it.

    A CPU whose socket is not known is in the known socket of its group with the lowest CPU. A group
    without a known socket is a socket with the lowest unused id.
    """
    used = set(known.values())
    for group in groups:
        fallback = next((known[cpu] for cpu in group if cpu in known), None)
        if fallback is None:
            fallback = min(set(range(len(used) + 1)) - used)
            used.add(fallback)
        for cpu in group:
            yield known.get(cpu, fallback), cpu


def _read_uncore_caches(tree: SysfsTree, online: CpuSet) -> dict[int, CpuSet]:
    shared: dict[int, CpuSet] = {}
    ids: dict[int, int | None] = {}
    for cpu in online:
        folder = _l3_folder(tree, cpu)
        if folder is None:
            continue
        cpus = tree.cpus(f"{folder}/shared_cpu_map", f"{folder}/shared_cpu_list", cpu)
        if cpus is None:
            tree.remarks.add(
                f"{CPU_FOLDER}/cpu[{{}}]/cache has an L3 without shared_cpu_map:"
                " treated as unknown",
                cpu,
            )
            continue
        shared[cpu], ids[cpu] = cpus, tree.number(f"{folder}/id", cpu)
    if online and not shared and not tree.names(_CACHE.replace("{}", str(next(iter(online))))):
        tree.remarks.add(f"{CPU_FOLDER}/cpu*/cache is absent: no CPUs are known to share an L3")
    return _caches_by_id(tree, shared, ids)


def _l3_folder(tree: SysfsTree, cpu: int) -> str | None:
    folders = (f"{_CACHE}/index{index}" for index in _L3_INDEXES)
    return next((folder for folder in folders if tree.number(f"{folder}/level", cpu) == 3), None)


def _caches_by_id(
    tree: SysfsTree, shared: Mapping[int, CpuSet], ids: Mapping[int, int | None]
) -> dict[int, CpuSet]:
    """The caches by the kernel's ids if these are distinct, else numbered from 0."""
    groups, conflicting = merge_groups(shared)
    if conflicting:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/cache: shared_cpu_map of the L3 differs from that of the CPUs"
            " in it: all CPUs that list each other are treated as sharing it",
            *conflicting,
        )
    ids_of_groups = [{ids[cpu] for cpu in group} for group in groups]
    agreed = [next(iter(found)) for found in ids_of_groups if len(found) == 1]
    valid = [id_ for id_ in agreed if id_ is not None and id_ >= 0]
    if len(set(valid)) == len(groups):
        return dict(sorted(zip(valid, groups, strict=True)))
    tree.remarks.add(
        f"{CPU_FOLDER}/cpu[{{}}]/cache: the L3 has no unique id: L3 caches are numbered in the"
        " order of their CPUs",
        *shared,
    )
    return dict(enumerate(groups))


def _siblings(tree: SysfsTree, online: CpuSet, names: tuple[str, str]) -> dict[int, CpuSet]:
    """The siblings that each CPU's file lists; the file has an older and a newer name."""
    listed = {}
    for cpu in online:
        for name in names:
            read = tree.cpus(f"{_TOPOLOGY}/{name}", f"{_TOPOLOGY}/{name}_list", cpu)
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
