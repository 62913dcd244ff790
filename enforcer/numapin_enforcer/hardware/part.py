"""The part of a machine that a node's pods may use. Does no I/O."""

from dataclasses import dataclass, replace
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.tree import AllowedSets


@dataclass(frozen=True, slots=True)
class Withheld:
    """CPUs, and NUMA nodes with memory, that the machine has and pods may not use; and why."""

    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()
    cpus_limit: str = ""
    mems_limit: str = ""


NOTHING: Final = Withheld()


def withheld_from(machine: Topology, allowed: AllowedSets) -> Withheld:
    """What pods may not use of a machine."""
    cpus = machine.online - allowed.cpus if allowed.cpus else CpuSet()
    mems = machine.mems - allowed.mems if allowed.mems else MemSet()
    return Withheld(cpus, mems, allowed.cpus_limit, allowed.mems_limit)


def part_of(machine: Topology, withheld: Withheld) -> Topology:
    """The machine as pods may use it, with a warning that says what is left and why.

    CPUs that are withheld are neither online nor offline. A NUMA node whose memory is withheld has
    no memory. If nothing were left, nothing counts as withheld.
    """
    if machine.online <= withheld.cpus:
        withheld = replace(withheld, cpus=CpuSet())
    if machine.mems <= withheld.mems:
        withheld = replace(withheld, mems=MemSet())
    gone, closed = withheld.cpus & machine.online, withheld.mems & machine.mems
    if not gone and not closed:
        return machine
    warnings = []
    if gone:
        left = f"planned with CPU {machine.online - gone} of {machine.online}"
        warnings.append(f"{left}: {withheld.cpus_limit}")
    if closed:
        left = f"planned with the memory of NUMA node {machine.mems - closed} of {machine.mems}"
        warnings.append(f"{left}: {withheld.mems_limit}")
    return replace(
        machine,
        cpus=_without(machine.cpus, gone),
        numa_nodes=tuple(_without_memory(one, closed) for one in machine.numa_nodes),
        withheld=gone,
        warnings=(*warnings, *machine.warnings),
    )


def limits(part: Topology, machine: Topology) -> tuple[str, ...]:
    """The warnings that `part_of` has added."""
    return part.warnings[: len(part.warnings) - len(machine.warnings)]


def _without(cpus: tuple[Cpu, ...], gone: CpuSet) -> tuple[Cpu, ...]:
    """The other CPUs; the id of a core is the lowest of those that are left."""
    left = [cpu for cpu in cpus if cpu.id not in gone]
    lowest: dict[int, int] = {}
    for cpu in left:
        lowest.setdefault(cpu.core, cpu.id)
    return tuple(replace(cpu, core=lowest[cpu.core]) for cpu in left)


def _without_memory(numa_node: NumaNode, closed: MemSet) -> NumaNode:
    if numa_node.id not in closed:
        return numa_node
    return replace(numa_node, memory_bytes=0, hugepages={})
