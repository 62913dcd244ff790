"""How much memory each NUMA node has, and how much of it containers can be bound to."""

from collections.abc import Iterator

from numapin_api.cpupolicy import CpuPolicySpec, MemoryPolicy, MemoryReservation
from numapin_api.cpuset import MemSet
from numapin_api.quantity import QuantityError, whole
from numapin_api.topology import NumaNode, Topology, page_size_bytes
from numapin_operator.placement.errors import PolicyError
from numapin_operator.placement.requests import HUGEPAGES_PREFIX, MEMORY, Capacity


def bindable_memory(topology: Topology, memory: MemoryPolicy) -> Capacity:
    """Memory and huge pages that containers can be bound to; empty if the policy binds none.

    What is reserved of memory that containers never get makes no difference: that of a device, and
    that of NUMA nodes without CPUs if the policy keeps them off.

    Raises:
        PolicyError: a NUMA node does not exist, or has less than is reserved.
    """
    if memory.policy == "None":
        return {}
    capacity: dict[str, dict[int, int]] = {MEMORY: {}} | memory_of(topology)
    never = topology.device_nodes | kept_off(topology, memory)
    for at in capacity.values():
        at.update(dict.fromkeys(at.keys() & set(never), 0))
    for index, reserved in enumerate(memory.reserved):
        field = f"memory.reserved[{index}]"
        if reserved.numa_node not in capacity[MEMORY]:
            numa_nodes = ", ".join(map(str, capacity[MEMORY]))
            raise PolicyError(
                f"{field}.numaNode",
                f"this machine has no NUMA node {reserved.numa_node}, only {numa_nodes}",
            )
        if reserved.numa_node in never:
            continue
        for resource, quantity in reserved_amounts(reserved):
            at = capacity.setdefault(resource, {})
            _reserve(at, reserved.numa_node, quantity, f"{field}: {resource}")
    return capacity


def kept_off(topology: Topology, memory: MemoryPolicy) -> MemSet:
    """The NUMA nodes without CPUs that the policy keeps containers off.

    If no other one has memory, it keeps them off none: nothing could be bound anywhere.
    """
    with_cpus = topology.mems - topology.mems_without_cpus
    never = "Any" if memory.policy == "Static" else "Never"
    if (memory.nodes_without_cpus or never) != "Never" or not with_cpus:
        return MemSet()
    return topology.mems_without_cpus


def tried_first(topology: Topology, memory: MemoryPolicy) -> MemSet:
    """The NUMA nodes on which memory is bound before others; none if that makes no difference."""
    if memory.nodes_without_cpus != "Spill" or not topology.mems_without_cpus:
        return MemSet()
    return topology.mems - topology.mems_without_cpus


def memory_of(topology: Topology) -> dict[str, dict[int, int]]:
    """Memory and huge pages by NUMA node."""
    capacity: dict[str, dict[int, int]] = {}
    for numa_node in topology.numa_nodes:
        for resource, size in _memory_on(numa_node):
            capacity.setdefault(resource, {})[numa_node.id] = size
    return capacity


def memory_without_cpus(policy: CpuPolicySpec, topology: Topology | None) -> str:
    """Which NUMA nodes without CPUs containers can be bound to although the policy says nothing.

    Empty if there are none.

    Raises:
        PolicyError: see `bindable_memory`.
    """
    if policy.mode == "None" or topology is None or policy.memory.nodes_without_cpus is not None:
        return ""
    left = bindable_memory(topology, policy.memory).get(MEMORY, {})
    bare = MemSet(node for node in topology.mems_without_cpus if left.get(node))
    if not bare:
        return ""
    return (
        f"NUMA node{'s' if len(bare) > 1 else ''} {bare} with memory and no CPUs, such as CXL and "
        "high-bandwidth memory: containers are bound there as elsewhere. To keep them off, set "
        "memory.nodesWithoutCPUs to Never, or allow it with Any (docs/topology.md)"
    )


def _memory_on(numa_node: NumaNode) -> Iterator[tuple[str, int]]:
    """Memory and huge pages of a NUMA node; a device's own memory is there with no bytes."""
    if numa_node.on_device:
        yield MEMORY, 0
        return
    ordinary = numa_node.memory_bytes
    for size, pages in numa_node.hugepages.items():
        total = pages * page_size_bytes(size)
        ordinary -= total
        yield f"{HUGEPAGES_PREFIX}{size}", total
    yield MEMORY, max(0, ordinary)


def keeps_all(reserved: MemoryReservation, topology: Topology | None) -> bool:
    """Whether an entry of `memory.reserved` keeps containers off memory apart from the CPUs.

    This is memory of a device, or all memory of a NUMA node without CPUs.
    """
    if topology is None or reserved.numa_node in topology.device_nodes:
        return topology is not None
    has = memory_of(topology).get(MEMORY, {}).get(reserved.numa_node, 0)
    bare = reserved.numa_node in topology.mems_without_cpus
    return bare and reserved.memory is not None and whole(reserved.memory) >= has


def reserved_amounts(reserved: MemoryReservation) -> Iterator[tuple[str, str]]:
    """Each resource of one entry of `memory.reserved`, with its quantity."""
    if reserved.memory is not None:
        yield MEMORY, reserved.memory
    for size, quantity in reserved.hugepages.items():
        yield f"{HUGEPAGES_PREFIX}{size}", quantity


def _reserve(at: dict[int, int], numa_node: int, quantity: str, field: str) -> None:
    try:
        size = whole(quantity)
    except QuantityError as refused:
        raise PolicyError(field, str(refused)) from refused
    present = at.get(numa_node, 0)
    if size > present:
        raise PolicyError(
            field,
            f"{size} bytes reserved of the {present} that NUMA node {numa_node} has; lower it",
        )
    at[numa_node] = present - size
