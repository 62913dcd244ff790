"""What a machine can no longer give to containers that have it by an earlier assignment.

CPUs go offline; firmware settings, a resized virtual machine and removed memory change the NUMA
nodes under pods that stay. Does no I/O.
"""

from dataclasses import replace

from numapin_api.schema.plain_assignment import ContainerAssignment, MemoryBlock
from numapin_api.topology import Topology
from numapin_operator.placement.assignment.moving import on_online_cpus


def on_this_machine(entry: ContainerAssignment, topology: Topology) -> ContainerAssignment | None:
    """The entry without CPUs and NUMA nodes that the machine has lost; None if nothing is left.

    The kernel removes offline CPUs from every cpuset, and an enforcer accepts no assignment that
    names one. A block that has lost all its NUMA nodes stays as it is: see
    `memorymanager.within_memory`.
    """
    entry = on_online_cpus(entry, topology.online)
    cpus, mems = entry.cpus & topology.online, entry.mems & topology.mems
    memory = tuple(_on_present_nodes(block, topology) for block in entry.memory)
    if (cpus, mems, memory) == (entry.cpus, entry.mems, entry.memory):
        return entry
    if entry.cpus and not cpus:
        return None
    grants = tuple(left for one in entry.grants or () if (left := one & cpus)) or None
    moving = entry.moving
    if moving is not None:
        moving = replace(moving, leaving_mems=moving.leaving_mems & topology.mems)
    return replace(entry, cpus=cpus, mems=mems, memory=memory, grants=grants, moving=moving)


def _on_present_nodes(block: MemoryBlock, topology: Topology) -> MemoryBlock:
    known = {one.id for one in topology.numa_nodes}
    if known.issuperset(block.numa_nodes):
        return block
    left = tuple(node for node in block.numa_nodes if node in known)
    return replace(block, numa_nodes=left) if left else block
