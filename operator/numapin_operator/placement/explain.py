"""The numbers in a refusal's message: what was free where, and what would have fitted."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from numapin_api.quantity import format_bytes, plural
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.errors import (
    NotEnoughCpusError,
    NotEnoughMemoryError,
    PlacementError,
    SharedPoolEmptyError,
    SmtAlignmentError,
    TopologyAffinityError,
)
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy import NodePolicy
from numapin_operator.placement.requests import MEMORY

_MOST_NODES: Final = 16
"""NUMA nodes listed in one message."""


def arithmetic(
    policy: NodePolicy,
    cpus: CpuPool,
    memory: MemoryTables | None,
    refused: PlacementError,
    own: CpuMask = NO_CPUS,
) -> str:
    """What was free on each NUMA node, and what would have fitted.

    `own` are the CPUs that the refused container had got before its memory was refused.
    """
    free = own | _free(cpus, refused)
    fitting = ", ".join(_fitting(policy, free, memory, refused))
    return _listed(policy, free, memory, refused) + (fitting and f"; {fitting}")


def what_is_free(
    policy: NodePolicy, cpus: CpuPool, memory: MemoryTables | None, refused: PlacementError
) -> str:
    """What was free on each NUMA node."""
    return _listed(policy, _free(cpus, refused), memory, refused)


def _free(cpus: CpuPool, refused: PlacementError) -> CpuMask:
    return cpus.free_whole_cores if isinstance(refused, SmtAlignmentError) else cpus.free


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


def _fitting(
    policy: NodePolicy, free: CpuMask, memory: MemoryTables | None, refused: PlacementError
) -> Iterator[str]:
    match refused:
        case SmtAlignmentError():
            count = policy.cpu_groups.whole_cores(free).bit_count()
            size = (
                f" in multiples of {policy.cpu_groups.threads}" if policy.cpu_groups.uniform else ""
            )
            yield _up_to(count) + size
        case NotEnoughCpusError():
            yield _up_to(free.bit_count())
        case SharedPoolEmptyError():
            yield _up_to(max(0, free.bit_count() - 1))
        case TopologyAffinityError():
            most = largest_aligned(policy.cpu_groups, free, policy.hint_merger.policy)
            yield _up_to(most, " together")
            yield from _largest_memory(memory)
        case NotEnoughMemoryError():
            yield from _largest_memory(memory)


def _up_to(count: int, how: str = "") -> str:
    return f"up to {plural(count, 'CPU')} would fit{how}" if count else "no CPU would fit"


def _largest_memory(memory: MemoryTables | None) -> Iterator[str]:
    for resource, at in sorted(memory.free.items() if memory else ()):
        if resource == MEMORY or any(at.values()):
            most = format_bytes(max(at.values(), default=0))
            yield f"up to {most} of {resource} on one NUMA node"


def largest_aligned(cpu_groups: CpuGroups, free: CpuMask, policy: str) -> int:
    """The most CPUs for which the topology policy would find NUMA nodes, memory aside.

    A count is aligned on n NUMA nodes only if n - 1 could not hold it on an empty machine.
    """
    there = sorted(
        ((mask & free).bit_count() for mask in cpu_groups.numa_nodes.values()), reverse=True
    )
    sizes = sorted((mask.bit_count() for mask in cpu_groups.numa_nodes.values()), reverse=True)
    if policy == "SingleNUMANode":
        return there[0]
    fewer = (0, *accumulate(sizes))
    return max(
        (total for total, below in zip(accumulate(there), fewer, strict=False) if total > below),
        default=0,
    )
