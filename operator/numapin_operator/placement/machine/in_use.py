"""Memory in use that no assignment accounts for, and that must therefore not be promised."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from numapin_operator.placement.allocations import PodAllocation
from numapin_operator.placement.machine.node import Node
from numapin_operator.placement.masks import NO_CPUS, CpuMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import MEMORY, Capacity, PodView, pod_memory

ACCOUNTED_QOS: Final = "Guaranteed"
"""What other pods request is not what they may use, as in the kubelet's Memory Manager."""


def node_with(
    policy: NodePolicy,
    allocations: Iterable[PodAllocation],
    unbound: Iterable[PodView],
    held: Capacity,
) -> Node:
    """The node with other allocations, and with the memory in use that none of them accounts for.

    Args:
        policy: the policy that governs the node.
        allocations: what pods have.
        unbound: the pods that run without memory bound to them.
        held: huge pages that others hold.
    """
    node = Node(policy)
    for allocation in allocations:
        node.adopt(allocation)
    account_unbound(node, unbound)
    withhold(node, held)
    return node


def running_unbound(
    node: Node, alive: Mapping[str, PodView], refused: Collection[str], settled: Collection[str]
) -> tuple[PodView, ...]:
    """The pods that run and are not about to be placed; those that are bound among them."""
    return tuple(
        pod
        for uid, pod in alive.items()
        if uid in settled
        or (not pod.terminal and (uid in node.allocations or uid in refused or not node.wants(pod)))
    )


def account_unbound(node: Node, pods: Iterable[PodView]) -> None:
    """Withhold the memory of Guaranteed pods that run without being bound, or not bound yet.

    What a pod uses is withheld where the kernel has it, as far as that is reported. What it
    requests besides will come from the NUMA node of the CPU that first uses it: it is withheld
    where the pod's own CPUs are, or on every NUMA node in proportion to its memory.
    Source: Documentation/admin-guide/mm/numa_memory_policy.rst, "System Default Policy".

    Memory that is too much to move stays where it is although the pod is bound elsewhere.
    """
    if node.memory is None:
        return
    for pod in pods:
        if pod.qos != ACCOUNTED_QOS:
            continue
        if allocation := _bound(node, pod):
            if pod.uid in node.policy.used_memory:
                _withhold_elsewhere(node, node.memory, pod, allocation)
        else:
            for resource, size in pod_memory(pod):
                rest = size
                if resource == MEMORY:
                    rest -= _withhold_used(node, node.memory, pod.uid, size)
                _withhold(node, node.memory, pod.uid, resource, rest)


def account_refused(node: Node, pod: PodView) -> None:
    """Withhold the memory, huge pages aside, of a pod that has just been refused: it runs."""
    if node.memory is not None and pod.qos == ACCOUNTED_QOS:
        for resource, size in pod_memory(pod):
            if resource == MEMORY:
                _withhold(node, node.memory, pod.uid, resource, size)


def held_hugepages(node: Node) -> Capacity:
    """Huge pages that others hold, in bytes: what is not promised, and not free by the kernel."""
    unpromised = node.memory.free if node.memory is not None else {}
    return {
        resource: {
            numa_node: unpromised.get(resource, {}).get(numa_node, 0) - free
            for numa_node, free in at.items()
        }
        for resource, at in node.policy.free_hugepages.items()
    }


def withhold(node: Node, held: Capacity) -> None:
    """Withhold huge pages that others hold; a size that is not positive withholds nothing."""
    if node.memory is not None:
        for resource, at in held.items():
            for numa_node, size in at.items():
                node.memory.withhold(resource, numa_node, size)


def _withhold_used(node: Node, memory: MemoryTables, uid: str, size: int) -> int:
    """Withhold what a pod uses, at most what it requests; returns how much of that there is."""
    used = node.policy.used_memory.get(uid, {})
    total, counted = sum(used.values()), 0
    for numa_node, count in used.items():
        part = count if total <= size else count * size // total
        memory.withhold(MEMORY, numa_node, part)
        counted += part
    return counted


def _bound(node: Node, pod: PodView) -> PodAllocation | None:
    """What a pod has, if memory is part of it."""
    allocation = node.allocations.get(pod.uid)
    if allocation is None:
        return None
    if allocation.pod_level is None:
        for container in allocation.containers:
            if container.memory:
                return allocation
        return None
    return allocation if allocation.pod_level.memory else None


def _withhold_elsewhere(
    node: Node, memory: MemoryTables, pod: PodView, allocation: PodAllocation
) -> None:
    """Withhold what a bound pod uses on NUMA nodes that it is not bound to."""
    own = {numa_node for block in allocation.memory for numa_node in block.node_ids}
    most = dict(pod_memory(pod)).get(MEMORY, 0)
    for numa_node, count in node.policy.used_memory.get(pod.uid, {}).items():
        if numa_node not in own:
            memory.withhold(MEMORY, numa_node, min(count, most))


def _withhold(node: Node, memory: MemoryTables, uid: str, resource: str, size: int) -> None:
    allocation = node.allocations.get(uid)
    weights = _weights(node, allocation.cpus if allocation else NO_CPUS, resource)
    total, left = sum(weights.values()), size
    for numa_node, weight in weights.items():
        left -= memory.withhold(resource, numa_node, -(-size * weight // total) if total else 0)
    for numa_node in memory.numa_nodes:
        left -= memory.withhold(resource, numa_node, max(0, left))


def _weights(node: Node, cpus: CpuMask, resource: str) -> Mapping[int, int]:
    if not cpus:
        return node.policy.capacity.get(resource, {})
    return {
        numa_node: (mask & cpus).bit_count()
        for numa_node, mask in node.policy.cpu_groups.numa_nodes.items()
    }
