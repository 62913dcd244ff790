"""CPUs, cores, sockets and shared caches from sysfs.

Source: Documentation/ABI/stable/sysfs-devices-system-cpu in the Linux source.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.hardware.files import CPU_FOLDER, SysfsTree

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
                f"{CPU_FOLDER}/cpu[{{}}] is absent though listed online: taken as offline", *missing
            )
        return listed & known
    # Kernels without CPU hotplug have neither the list nor a file for each CPU.
    return CpuSet(cpu for cpu in known if tree.number(f"{CPU_FOLDER}/cpu{{}}/online", cpu) != 0)


def _read_cores(tree: SysfsTree, online: CpuSet) -> list[CpuSet]:
    stated = _siblings(tree, online, ("thread_siblings", "core_cpus"))
    silent = [cpu for cpu in online if cpu not in stated]
    if silent:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology has no thread_siblings: taken as a core by itself"
            " unless a sibling names it",
            *silent,
        )
    cores, disagreeing = merge_groups({cpu: stated.get(cpu, CpuSet()) for cpu in online})
    if disagreeing - CpuSet(silent):
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/topology/thread_siblings contradicts that of its siblings:"
            " all that name each other are taken as one core",
            *(disagreeing - CpuSet(silent)),
        )
    return cores


def _read_sockets(tree: SysfsTree, online: CpuSet) -> dict[int, CpuSet]:
    ids = {cpu: tree.number(f"{_TOPOLOGY}/physical_package_id", cpu) for cpu in online}
    known = {cpu: id_ for cpu, id_ in ids.items() if id_ is not None and id_ >= 0}
    unknown = online - CpuSet(known)
    if not unknown:
        return CpuSet.grouped((socket, cpu) for cpu, socket in known.items())
    stated = _siblings(tree, online, ("core_siblings", "package_cpus"))
    silent = online - CpuSet(stated)
    tree.remarks.add(
        f"{CPU_FOLDER}/cpu[{{}}]/topology/physical_package_id is absent or negative: the socket is"
        " taken from core_siblings, and is the same for all CPUs without that",
        *unknown,
    )
    groups, _ = merge_groups({cpu: stated.get(cpu, silent) for cpu in online})
    return CpuSet.grouped(_numbered_sockets(groups, known))


def _numbered_sockets(
    groups: Iterable[CpuSet], known: Mapping[int, int]
) -> Iterable[tuple[int, int]]:
    """Pairs of a socket and a CPU: its own socket, else its group's, else an unused number."""
    used = set(known.values())
    for group in groups:
        of_group = next((known[cpu] for cpu in group if cpu in known), None)
        if of_group is None:
            of_group = min(set(range(len(used) + 1)) - used)
            used.add(of_group)
        for cpu in group:
            yield known.get(cpu, of_group), cpu


def _read_uncore_caches(tree: SysfsTree, online: CpuSet) -> dict[int, CpuSet]:
    stated: dict[int, CpuSet] = {}
    ids: dict[int, int | None] = {}
    for cpu in online:
        folder = _l3_folder(tree, cpu)
        if folder is None:
            continue
        shared = tree.cpus(f"{folder}/shared_cpu_map", f"{folder}/shared_cpu_list", cpu)
        if shared is None:
            tree.remarks.add(
                f"{CPU_FOLDER}/cpu[{{}}]/cache has an L3 without shared_cpu_map: taken as unknown",
                cpu,
            )
            continue
        stated[cpu], ids[cpu] = shared, tree.number(f"{folder}/id", cpu)
    if online and not stated and not tree.names(_CACHE.replace("{}", str(next(iter(online))))):
        tree.remarks.add(f"{CPU_FOLDER}/cpu*/cache is absent: no CPUs are known to share an L3")
    return _numbered_caches(tree, stated, ids)


def _l3_folder(tree: SysfsTree, cpu: int) -> str | None:
    folders = (f"{_CACHE}/index{index}" for index in _L3_INDEXES)
    return next((folder for folder in folders if tree.number(f"{folder}/level", cpu) == 3), None)


def _numbered_caches(
    tree: SysfsTree, stated: Mapping[int, CpuSet], ids: Mapping[int, int | None]
) -> dict[int, CpuSet]:
    """The caches by the kernel's ids if these are distinct, else numbered from 0."""
    groups, disagreeing = merge_groups(stated)
    if disagreeing:
        tree.remarks.add(
            f"{CPU_FOLDER}/cpu[{{}}]/cache: shared_cpu_map of the L3 contradicts that of the CPUs"
            " in it: all that name each other are taken to share it",
            *disagreeing,
        )
    numbers = [{ids[cpu] for cpu in group} for group in groups]
    singles = [number for group in numbers for number in group if len(group) == 1]
    distinct = [number for number in singles if number is not None and number >= 0]
    if len(set(distinct)) == len(groups):
        return dict(sorted(zip(distinct, groups, strict=True)))
    tree.remarks.add(
        f"{CPU_FOLDER}/cpu[{{}}]/cache: the L3 has no id of its own: L3 caches are numbered in the"
        " order of their CPUs",
        *stated,
    )
    return dict(enumerate(groups))


def _siblings(tree: SysfsTree, online: CpuSet, names: tuple[str, str]) -> dict[int, CpuSet]:
    """The siblings that each CPU states, from the file's older or newer name."""
    stated = {}
    for cpu in online:
        for name in names:
            read = tree.cpus(f"{_TOPOLOGY}/{name}", f"{_TOPOLOGY}/{name}_list", cpu)
            if read:
                stated[cpu] = read
                break
    return stated


def merge_groups(stated: Mapping[int, CpuSet]) -> tuple[list[CpuSet], CpuSet]:
    """Join sets with a common CPU until all sets are disjoint.

    Args:
        stated: for each CPU the CPUs that it states as its siblings; the CPU itself is added, and
            CPUs without a statement of their own are dropped.

    Returns:
        The groups in the order of their lowest CPU, and the CPUs whose own statement differs from
        their group: none if all statements agree, as on a machine without firmware faults.
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
