"""What each NUMA node of a machine has, gives to containers, and has left."""

from collections.abc import Mapping
from typing import NamedTuple

from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.memory_capacity import memory_of
from numapin_operator.placement.requests import CPU


class Amount(NamedTuple):
    """CPUs, or bytes of memory or of huge pages.

    Attributes:
        capacity: all of it.
        allocatable: what exclusive containers can get on a machine without pods.
        available: what they can get now.
    """

    capacity: int
    allocatable: int
    available: int


NumaAmounts = Mapping[str, Amount]
"""The amounts of one NUMA node by resource: `cpu`, `memory`, `hugepages-2Mi`."""


def numa_amounts(node: Node) -> dict[int, NumaAmounts]:
    """The amounts of each NUMA node, by its ID.

    With `options.fullPCPUsOnly` a CPU whose core is not free counts as given out: no container can
    get it. So does the last CPU of the shared pool. Memory that the policy does not bind is
    available as a whole. With `SingleNUMANode` no memory is available where containers are bound
    to several NUMA nodes together: under policy Static such a node serves no others.
    """
    policy = node.policy
    allocatable = policy.cpu_taker.countable(policy.given_out & ~policy.reserved)
    cpus = policy.topology.numa_cpus
    amounts: dict[int, dict[str, Amount]] = {}
    for numa_node in policy.topology.numa_nodes:
        there = policy.cpu_groups.numa_nodes.get(numa_node.id, NO_CPUS)
        available = policy.cpu_taker.countable(node.cpus.free & ~_last_shared(node, there))
        counts = ((there & allocatable).bit_count(), (there & available).bit_count())
        amounts[numa_node.id] = {CPU: Amount(len(cpus[numa_node.id]), *counts)}
    for resource, at in sorted(memory_of(policy.topology).items()):
        for numa_node_id, size in at.items():
            amounts[numa_node_id][resource] = _memory(node, resource, numa_node_id, size)
    return dict(amounts)


def promised_amounts(node: Node) -> dict[int, NumaAmounts]:
    """What containers can be promised: `numa_amounts` without memory that the policy does not bind.

    What a NUMA node does not have is left out.
    """
    return {
        numa_node: {
            resource: amount
            for resource, amount in amounts.items()
            if amount.capacity and (resource == CPU or node.memory is not None)
        }
        for numa_node, amounts in numa_amounts(node).items()
    }


def _last_shared(node: Node, there: CpuMask) -> CpuMask:
    """A CPU that no container gets, since the shared pool has none elsewhere; else none."""
    shared = node.cpus.shared
    return CpuMask(shared & -shared) if not shared & ~there else NO_CPUS


def _memory(node: Node, resource: str, numa_node: int, size: int) -> Amount:
    if node.memory is None:
        return Amount(size, size, size)
    spec, bindable = node.policy.spec, node.policy.capacity.get(resource, {}).get(numa_node, 0)
    is_single = (spec.topology.policy, spec.memory.policy) == ("SingleNUMANode", "Static")
    if is_single and node.memory.in_group(numa_node):
        return Amount(size, bindable, 0)
    return Amount(size, bindable, node.memory.free.get(resource, {}).get(numa_node, 0))
