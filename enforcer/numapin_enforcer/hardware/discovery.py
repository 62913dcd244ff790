"""Discover a machine's hardware from its /sys and /proc, live or captured."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import MemSet
from numapin_api.hardware.crossings import crossings
from numapin_api.topology import NO_CACHE, Cpu, Topology
from numapin_enforcer.hardware.sysfs.cpus import CpuFacts, read_cpus, read_numbers
from numapin_enforcer.hardware.sysfs.device_memory import mark_device_nodes
from numapin_enforcer.hardware.sysfs.names import read_names
from numapin_enforcer.hardware.sysfs.numa import (
    assign_others,
    note_empty_nodes,
    read_cpus_of_nodes,
    read_nodes,
    read_online_nodes,
    read_single_node,
)
from numapin_enforcer.hardware.sysfs.pci import read_pci, read_pci_roots
from numapin_enforcer.hardware.sysfs.remarks import Remarks
from numapin_enforcer.hardware.sysfs.sysfs_tree import CPU_FOLDER, SysfsTree


class DiscoveryError(Exception):
    """No CPU of the machine can be read, so nothing can be assigned."""

    reason: ClassVar[Reason] = Reason.TOPOLOGY_UNREADABLE

    def __init__(self, place: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


def discover(sysfs: Path = Path("/sys"), procfs: Path = Path("/proc")) -> Topology:
    """Read the hardware; each file once, nothing is written.

    Faults of the firmware or kernel are repaired as far as possible. The result's `warnings` name
    the file, what is wrong in it, and what is assumed instead.

    Args:
        sysfs: where the machine's /sys is mounted, or a copy of it.
        procfs: where its /proc is mounted; has the memory of machines without NUMA, and GPUs.

    Raises:
        DiscoveryError: there is no online CPU below `sysfs`.
    """
    remarks = Remarks()
    tree, proc = SysfsTree(sysfs, remarks), SysfsTree(procfs, remarks, "proc/")
    online, offline = read_numbers(tree)
    if not online:
        raise _nothing_there(sysfs, tree)
    online_nodes = read_online_nodes(tree)
    listed = read_cpus_of_nodes(tree, online_nodes, online)
    facts = read_cpus(tree, online, offline, listed)
    if online_nodes:
        numa_nodes = read_nodes(tree, proc, online_nodes)
        homes = assign_others(tree, online_nodes, listed, facts)
        with_cpus = MemSet(homes.values())
        numa_nodes = mark_device_nodes(tree, proc, numa_nodes, with_cpus)
        note_empty_nodes(tree, numa_nodes, with_cpus)
    else:
        numa_nodes = read_single_node(tree, proc)
        homes = dict.fromkeys(online, 0)
    bare = Topology(_cpus(facts, homes), numa_nodes, facts.offline, facts.isolated)
    pci = read_pci(tree, bare.numa_cpus)
    warnings = (*remarks.texts(), *crossings(bare))
    return replace(
        bare,
        pci=pci,
        warnings=warnings,
        names=read_names(tree),
        pci_roots=read_pci_roots(tree, pci),
    )


def _cpus(facts: CpuFacts, homes: dict[int, int]) -> tuple[Cpu, ...]:
    cores = {cpu: next(iter(core)) for core in facts.cores for cpu in core}
    sockets = {cpu: number for number, cpus in facts.sockets.items() for cpu in cpus}
    caches = {cpu: number for number, cpus in facts.uncore_caches.items() for cpu in cpus}
    return tuple(
        Cpu(cpu, cores[cpu], sockets[cpu], caches.get(cpu, NO_CACHE), homes[cpu])
        for cpu in facts.online
    )


def _nothing_there(sysfs: Path, tree: SysfsTree) -> DiscoveryError:
    there = tree.names(CPU_FOLDER)
    problem = "has no online CPU" if there else "is absent, empty or closed to this user"
    details = "; ".join((problem, *tree.remarks.texts()))
    remedy = "give the path of the machine's /sys, or of a complete copy of it"
    return DiscoveryError(sysfs / CPU_FOLDER, details, remedy)
