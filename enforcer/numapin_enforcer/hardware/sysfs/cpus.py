"""CPUs, cores, sockets and shared caches from sysfs.

Source: Documentation/ABI/stable/sysfs-devices-system-cpu in the Linux source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_api.hardware.limits import MAX_GROUP_ID
from numapin_enforcer.hardware.sysfs.siblings import TOPOLOGY, merge_groups, read_siblings
from numapin_enforcer.hardware.sysfs.sockets import read_sockets
from numapin_enforcer.hardware.sysfs.sysfs_tree import CPU_FOLDER, SysfsTree

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


def read_cpus(
    tree: SysfsTree, online: CpuSet, offline: CpuSet, numa_nodes: Mapping[int, int]
) -> CpuFacts:
    """Read how the online CPUs are grouped.

    Args:
        tree: the machine.
        online: its online CPUs.
        offline: its other CPUs.
        numa_nodes: the NUMA node of each CPU that one lists.
    """
    threads = read_siblings(tree, online, "thread_siblings", "core_cpus")
    sockets = read_sockets(tree, online, threads, numa_nodes)
    socket_of = {cpu: socket for socket, cpus in sockets.items() for cpu in cpus}
    places = {cpu: (socket_of[cpu], numa_nodes.get(cpu, -1)) for cpu in online}
    isolated = tree.ids(f"{CPU_FOLDER}/isolated") or CpuSet()
    return CpuFacts(
        online=online,
        offline=offline,
        isolated=isolated & (online | offline),
        cores=tuple(_read_cores(tree, places, threads)),
        sockets=sockets,
        uncore_caches=_read_uncore_caches(tree, online),
    )


def read_numbers(tree: SysfsTree) -> tuple[CpuSet, CpuSet]:
    """The online and the offline CPUs."""
    known = tree.numbered(CPU_FOLDER, "cpu")
    online = _read_online(tree, known)
    return online, known - online


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


def _read_cores(
    tree: SysfsTree, places: Mapping[int, tuple[int, int]], threads: Mapping[int, CpuSet]
) -> list[CpuSet]:
    """The cores: CPUs that list each other, and those without a list by `core_id`."""
    online = CpuSet(places)
    unlisted = online - CpuSet(threads)
    by_id = _cores_by_id(tree, unlisted, places)
    alone = unlisted - CpuSet(by_id)
    if by_id:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology has no thread_siblings: those with the same core_id"
            " in one socket and NUMA node are treated as one core",
            *by_id,
        )
    if alone:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology has no thread_siblings: treated as a core of its own"
            " unless a sibling lists it",
            *alone,
        )
    listed = {**dict.fromkeys(alone, CpuSet()), **by_id, **threads}
    cores, conflicting = merge_groups(listed)
    if conflicting - unlisted:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology/thread_siblings differs from that of its siblings:"
            " all CPUs that list each other are treated as one core",
            *(conflicting - unlisted),
        )
    return cores


def _cores_by_id(
    tree: SysfsTree, cpus: CpuSet, places: Mapping[int, tuple[int, int]]
) -> dict[int, CpuSet]:
    """For each CPU with a `core_id` those of the same core; `core_id` repeats in other places.

    Source: cAdvisor, `getCoresInfo`.
    """
    cores: dict[tuple[int | None, ...], list[int]] = {}
    for cpu in cpus:
        core, die = (tree.number(f"{TOPOLOGY}/{name}", cpu) for name in ("core_id", "die_id"))
        if core is not None and core >= 0:
            cores.setdefault((*places[cpu], die, core), []).append(cpu)
    return {cpu: CpuSet(core) for core in cores.values() for cpu in core}


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
    """The caches by the kernel's ids if these are distinct and a status can have them, else from 0.

    On Arm an id can have 32 bits and more. Source: linux/drivers/base/cacheinfo.c.
    """
    groups, conflicting = merge_groups(shared)
    if conflicting:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/cache: shared_cpu_map of the L3 differs from that of the CPUs"
            " in it: all CPUs that list each other are treated as sharing it",
            *conflicting,
        )
    ids_of_groups = [{ids[cpu] for cpu in group} for group in groups]
    agreed = [next(iter(found)) for found in ids_of_groups if len(found) == 1]
    valid = [id_ for id_ in agreed if id_ is not None and 0 <= id_ <= MAX_GROUP_ID]
    if len(set(valid)) == len(groups):
        return dict(sorted(zip(valid, groups, strict=True)))
    tree.remarks.add(
        f"{CPU_FOLDER}/cpu[{{}}]/cache: the L3 has no unique id: L3 caches are numbered in the"
        " order of their CPUs",
        *shared,
    )
    return dict(enumerate(groups))
