"""The numbers in a refusal's message: what was free where, and what would have fitted."""

from collections.abc import Iterator
from typing import Final

from numapin_api.quantity import format_bytes, plural
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.errors import PlacementError, SmtAlignmentError
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy import NodePolicy

_MOST_NODES: Final = 16
"""NUMA nodes listed in one message."""


def what_is_free(
    policy: NodePolicy,
    cpus: CpuPool,
    memory: MemoryTables | None,
    refused: PlacementError,
    own: CpuMask = NO_CPUS,
) -> str:
    """What was free on each NUMA node.

    `own` are the CPUs that the refused container had got before its memory was refused.
    """
    free = own | cpus.free
    if isinstance(refused, SmtAlignmentError):
        free = policy.cpu_groups.whole_cores(free)
    return _listed(policy, free, memory, refused)


def what_would_fit(policy: NodePolicy, refused: PlacementError, count: int | None) -> str:
    """The largest smaller number of CPUs that would have been given; empty if it is not known."""
    if count is None:
        return ""
    groups = policy.cpu_groups
    in_cores = isinstance(refused, SmtAlignmentError) and groups.uniform and groups.threads > 1
    size = f" in multiples of {groups.threads}" if in_cores else ""
    return f"up to {plural(count, 'CPU')} would fit{size}"


def _listed(
    policy: NodePolicy, free: CpuMask, memory: MemoryTables | None, refused: PlacementError
) -> str:
    listed = list(_free_on_nodes(policy, free, memory))
    if len(listed) > _MOST_NODES:
        listed[_MOST_NODES:] = [f"and {len(listed) - _MOST_NODES} more"]
    kind = "in whole cores " if isinstance(refused, SmtAlignmentError) else ""
    return f"free {kind}on NUMA node " + ", ".join(listed)


def _free_on_nodes(policy: NodePolicy, free: CpuMask, memory: MemoryTables | None) -> Iterator[str]:
    for numa_node in policy.topology.numa_nodes:
        count = (policy.cpu_groups.numa_nodes.get(numa_node.id, NO_CPUS) & free).bit_count()
        parts = [plural(count, "CPU")]
        for resource, at in sorted(memory.free.items() if memory else ()):
            used = memory.withheld.get(resource, {}).get(numa_node.id, 0) if memory else 0
            by_others = f" ({format_bytes(used)} used by others)" if used else ""
            parts.append(f"{format_bytes(at.get(numa_node.id, 0))} {resource}{by_others}")
        yield f"{numa_node.id}: {' + '.join(parts)}"
