"""The numbers in a refusal's message: what was free where, and what would have fitted."""

from collections.abc import Iterator
from typing import Final

from numapin_api.cpuset import MemSet
from numapin_api.quantity import format_bytes, plural
from numapin_api.text import join_texts
from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.errors import (
    NotEnoughDevicesError,
    PlacementError,
    SmtAlignmentError,
    TopologyAffinityError,
)
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.memory_capacity import kept_off
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy.node_policy import NodePolicy

_LONGEST_LIST: Final = 512
"""Characters of the list: with it, the message of an Event (1,024 bytes) is whole."""


def what_is_free(
    policy: NodePolicy,
    cpus: CpuPool,
    memory: MemoryTables | None,
    refused: PlacementError,
    own: CpuMask = NO_CPUS,
) -> str:
    """What was free on each NUMA node; empty if neither CPUs nor memory were missing.

    `own` are the CPUs that the refused container had got before its memory was refused.
    """
    if isinstance(refused, NotEnoughDevicesError):
        return ""
    free = own | cpus.free
    counted = policy.cpu_taker.countable(free)
    in_cores = isinstance(refused, SmtAlignmentError)
    if isinstance(refused, TopologyAffinityError) and counted != free:
        free, in_cores = counted, True
    elif in_cores and policy.hint_merger.policy in ("Restricted", "SingleNUMANode"):
        free = counted
    elif in_cores:
        free = policy.cpu_groups.whole_cores(free)
    return _listed(policy, free, memory, in_cores=in_cores)


def what_would_fit(policy: NodePolicy, refused: PlacementError, count: int | None) -> str:
    """The largest smaller number of CPUs that would have been given; empty if it is not known."""
    if count is None:
        return ""
    groups = policy.cpu_groups
    in_cores = isinstance(refused, SmtAlignmentError) and groups.uniform and groups.threads > 1
    size = f" in multiples of {groups.threads}" if in_cores else ""
    return f"up to {plural(count, 'CPU')} would fit{size}"


def _listed(
    policy: NodePolicy, free: CpuMask, memory: MemoryTables | None, *, in_cores: bool
) -> str:
    """The NUMA nodes with most CPUs first; those that have as much free are listed as one.

    Memory of GPUs is named as such, where memory matters, and memory that the policy keeps off.
    """
    off = kept_off(policy.topology, policy.spec.memory) if memory else MemSet()
    equal: dict[str, list[int]] = {}
    for numa_node in sorted(
        (one.id for one in policy.topology.numa_nodes if not (one.on_device or one.id in off)),
        key=lambda one: [-amount for amount in _amounts(policy, free, memory, one)],
    ):
        equal.setdefault(_free_on(policy, free, memory, numa_node), []).append(numa_node)
    groups = [
        f"{MemSet(ids)}: {text}{' each' if len(ids) > 1 else ''}" for text, ids in equal.items()
    ]
    if memory and (of_gpus := policy.topology.device_nodes):
        groups.append(f"{of_gpus}: on a GPU, not for containers")
    if off:
        groups.append(f"{off}: without CPUs, kept off by memory.nodesWithoutCPUs")
    kind = "in whole cores " if in_cores else ""
    several = "s" if len(next(iter(equal.values()), ())) > 1 else ""
    return f"free {kind}on NUMA node{several} {join_texts(groups, ', ', _LONGEST_LIST)}"


def _amounts(
    policy: NodePolicy, free: CpuMask, memory: MemoryTables | None, numa_node: int
) -> Iterator[int]:
    """What is free on a NUMA node: CPUs, then bytes of each resource."""
    yield (policy.cpu_groups.numa_nodes.get(numa_node, NO_CPUS) & free).bit_count()
    for _, at in sorted(memory.free.items() if memory else ()):
        yield at.get(numa_node, 0)


def _free_on(policy: NodePolicy, free: CpuMask, memory: MemoryTables | None, numa_node: int) -> str:
    count, *sizes = _amounts(policy, free, memory, numa_node)
    parts = [plural(count, "CPU")]
    for resource, size in zip(sorted(memory.free) if memory else (), sizes, strict=True):
        used = memory.withheld.get(resource, {}).get(numa_node, 0) if memory else 0
        by_others = f" ({format_bytes(used)} used by others)" if used else ""
        parts.append(f"{format_bytes(size, down=True)} {resource}{by_others}")
    return " + ".join(parts)
