"""NUMA nodes: their CPUs, memory, huge pages and distances from sysfs.

Source: Documentation/ABI/stable/sysfs-devices-node in the Linux source.
"""

import re
from collections.abc import Mapping
from typing import Final

from numapin_api.cpuset import MAX_NUMA_NODE, CpuSet, MemSet
from numapin_api.topology import (
    LOCAL_DISTANCE,
    REMOTE_DISTANCE,
    NumaNode,
    default_distances,
    page_size_bytes,
    page_size_name,
)
from numapin_enforcer.hardware.sysfs.cpus import CpuFacts
from numapin_enforcer.hardware.sysfs.sysfs_tree import NODE_FOLDER, SysfsTree

_HUGEPAGES: Final = "hugepages"
_MEM_TOTAL = re.compile(r"\bMemTotal:\s*([0-9]{1,15}) kB", re.ASCII)


def read_online_nodes(sysfs: SysfsTree) -> MemSet:
    """The online NUMA nodes; none if the kernel has no NUMA support."""
    possible = CpuSet(range(MAX_NUMA_NODE + 1))
    known = MemSet(sysfs.numbered(NODE_FOLDER, "node") & possible)
    listed = MemSet(sysfs.ids(f"{NODE_FOLDER}/online") or ())
    if not listed:
        return known
    missing = listed - known
    if missing:
        sysfs.remarks.add(
            f"{NODE_FOLDER}/node[{{}}] does not exist but is listed as online: treated as offline",
            *missing,
        )
    return listed & known


def read_single_node(sysfs: SysfsTree, procfs: SysfsTree) -> tuple[NumaNode, ...]:
    """The whole machine as NUMA node 0, if the kernel has no NUMA nodes."""
    memory_bytes = read_memory_bytes(sysfs, procfs, MemSet())
    return (NumaNode(0, memory_bytes[0], read_hugepages(sysfs, 0), default_distances(1)[0]),)


def read_nodes(sysfs: SysfsTree, procfs: SysfsTree, online: MemSet) -> tuple[NumaNode, ...]:
    """Memory, huge pages and distances of each online node, in ascending order."""
    memory_bytes = read_memory_bytes(sysfs, procfs, online)
    return tuple(
        NumaNode(
            node,
            memory_bytes[node],
            read_hugepages(sysfs, node),
            _read_distances(sysfs, node, online),
        )
        for node in online
    )


def read_hugepages(sysfs: SysfsTree, node: int) -> dict[str, int]:
    """How many huge pages of each size a NUMA node has, free or not."""
    pages = {}
    folder = _hugepages_folder(sysfs, node)
    for name in sysfs.names(folder.replace("{}", str(node))):
        size = re.fullmatch(r"hugepages-([1-9][0-9]{0,11})kB", name, re.ASCII)
        if not size:
            continue
        count = sysfs.number(f"{folder}/{name}/nr_hugepages", node)
        if count is not None and count >= 0:
            pages[page_size_name(int(size[1]) << 10)] = count
    return pages


def read_free_hugepages(sysfs: SysfsTree, node: NumaNode) -> dict[str, int]:
    """How many huge pages the kernel has free, of the sizes of which the node has any."""
    sizes = [size for size, count in node.hugepages.items() if count]
    folder, pages = _hugepages_folder(sysfs, node.id) if sizes else "", {}
    for size in sizes:
        name = f"hugepages-{page_size_bytes(size) >> 10}kB/free_hugepages"
        count = sysfs.number(f"{folder}/{name}", node.id)
        if count is not None and count >= 0:
            pages[size] = count
    return pages


def _hugepages_folder(sysfs: SysfsTree, node: int) -> str:
    """A NUMA node's own folder, or the machine's if the kernel has no NUMA nodes."""
    of_node = f"{NODE_FOLDER}/node{{}}/{_HUGEPAGES}"
    is_numa = node or sysfs.names(NODE_FOLDER)
    return of_node if is_numa else f"kernel/mm/{_HUGEPAGES}"


def read_cpus_of_nodes(sysfs: SysfsTree, online: MemSet, cpus: CpuSet) -> dict[int, int]:
    """The NUMA node of each of the CPUs that an online node lists; of several nodes the lowest."""
    assigned: dict[int, int] = {}
    for node in online:
        listed = sysfs.cpus(
            f"{NODE_FOLDER}/node{{}}/cpumap", f"{NODE_FOLDER}/node{{}}/cpulist", node
        )
        listed = _linked(sysfs, node) if listed is None else listed
        for cpu in listed & cpus:
            if assigned.setdefault(cpu, node) != node:
                sysfs.remarks.add(
                    f"{NODE_FOLDER}/node[{{}}]/cpumap lists CPUs of lower-numbered nodes: they"
                    " belong to the lowest",
                    node,
                )
    return assigned


def assign_others(
    sysfs: SysfsTree, online: MemSet, listed: Mapping[int, int], facts: CpuFacts
) -> dict[int, int]:
    """The NUMA node of each online CPU, also of those that no online node lists.

    These go to the node of the other CPUs of their socket, else to the lowest node with CPUs.
    """
    unassigned = facts.online - CpuSet(listed)
    homes = _homes(unassigned, listed, facts, online)
    for cpu, node in homes.items():
        sysfs.remarks.add(
            f"CPUs {{}} are in no online NUMA node of {NODE_FOLDER}:"
            f" treated as CPUs of node {node}",
            cpu,
        )
    return {**listed, **homes}


def note_empty_nodes(sysfs: SysfsTree, nodes: tuple[NumaNode, ...], used: MemSet) -> None:
    """Remark on nodes that have neither CPUs nor memory."""
    empty = [node.id for node in nodes if node.id not in used and not node.memory_bytes]
    if empty:
        sysfs.remarks.add(
            f"{NODE_FOLDER}/node[{{}}] has neither CPUs nor memory: nothing is assigned there",
            *empty,
        )


def _homes(
    unassigned: CpuSet, assigned: Mapping[int, int], facts: CpuFacts, online: MemSet
) -> dict[int, int]:
    fallback = min(assigned.values(), default=next(iter(online)))
    homes = {}
    for cpus in facts.sockets.values():
        beside = min((assigned[cpu] for cpu in cpus if cpu in assigned), default=fallback)
        homes.update(dict.fromkeys(cpus & unassigned, beside))
    return homes


def _linked(sysfs: SysfsTree, node: int) -> CpuSet:
    """The CPUs that a node's folder links to, if it has no readable mask or list."""
    linked = sysfs.numbered(f"{NODE_FOLDER}/node{node}", "cpu")
    sysfs.remarks.add(
        f"{NODE_FOLDER}/node[{{}}] has no cpumap and no cpulist: its links to CPUs are used", node
    )
    return linked


def read_memory_bytes(sysfs: SysfsTree, procfs: SysfsTree, online: MemSet) -> dict[int, int]:
    """The memory of each online NUMA node; of node 0, if the kernel has no NUMA nodes."""
    if not online:
        whole = _mem_total(procfs, "meminfo", 0)
        if whole is None:
            procfs.remarks.add("proc/meminfo has no MemTotal: treated as no memory")
        return {0: whole or 0}
    read = {node: _mem_total(sysfs, f"{NODE_FOLDER}/node{{}}/meminfo", node) for node in online}
    known = {node: size for node, size in read.items() if size is not None}
    unknown = [node for node in online if node not in known]
    if any(known.values()) and not unknown:
        return known
    whole = _mem_total(procfs, "meminfo", 0) or 0
    sharing = unknown or list(online)
    share = max(0, whole - sum(known.values())) // len(sharing)
    sysfs.remarks.add(
        f"{NODE_FOLDER}/node[{{}}]/meminfo reports no memory: assumed {share >> 20} MiB each,"
        " an equal share of the rest of proc/meminfo",
        *sharing,
    )
    return known | dict.fromkeys(sharing, share)


def _mem_total(tree: SysfsTree, path: str, number: int) -> int | None:
    """MemTotal of a meminfo file in bytes; None if there is no such line."""
    found = _MEM_TOTAL.search(tree.text(path, number) or "")
    return int(found[1]) << 10 if found else None


def _read_distances(sysfs: SysfsTree, node: int, online: MemSet) -> tuple[int, ...]:
    """One value for each online node, in ascending order of the nodes; never empty."""
    path = f"{NODE_FOLDER}/node{{}}/distance"
    words = (sysfs.text(path, node) or "").split()
    if len(words) == len(online) and all(re.fullmatch(r"[0-9]{1,9}", word) for word in words):
        return tuple(map(int, words))
    sysfs.remarks.add(
        f"{path.replace('{}', '[{}]')} must have one number for each online NUMA node"
        f" ({online}): assumed {LOCAL_DISTANCE} to itself and {REMOTE_DISTANCE} to others",
        node,
    )
    return default_distances(len(online))[list(online).index(node)]
