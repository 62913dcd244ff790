"""What a node keeps back for its system: CPUs and memory that no container is bound to."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec, MemoryReservation
from numapin_api.quantity import as_quantity, plural, whole
from numapin_api.schema.plain_assignment import FreeHugepages, UnboundMemory
from numapin_api.topology import Topology, page_size_bytes
from numapin_operator.placement.memorymanager.memory_capacity import (
    keeps_all,
    memory_of,
    reserved_amounts,
)
from numapin_operator.placement.requests import HUGEPAGES_PREFIX, MEMORY, Amounts, Capacity

_PAGE_BYTES: Final = 4096
"""The smallest page of the kernel; memory is reserved in whole pages."""


@dataclass(frozen=True, slots=True)
class SystemReservation:
    """What a Node's status says that its kubelet keeps back: capacity less allocatable.

    Attributes:
        cpu_millis: in thousandths of a CPU.
        memory: memory without huge pages, and huge pages, in bytes; empty if the Node reports no
            memory.
    """

    cpu_millis: int = 0
    memory: Amounts = ()


def with_reserved(
    policy: CpuPolicySpec, topology: Topology, system: SystemReservation
) -> CpuPolicySpec:
    """The policy with what the Node keeps back, where the policy itself names nothing.

    The count of CPUs is rounded up and at least 1. CPUs that pods may not use anyway are part of
    what the Node keeps back. Memory and huge pages are taken from the NUMA nodes in proportion to
    what each has, in whole pages, and from every NUMA node no more than it has.
    """
    changed: dict[str, object] = {}
    if policy.reserved.cpus is None and policy.reserved.count is None:
        count = max(1, ceil(system.cpu_millis / 1000) - len(topology.withheld))
        changed["reserved"] = policy.reserved.model_copy(update={"count": count})
    if policy.memory.policy != "None" and not policy.memory.reserved:
        reserved = _in_proportion(topology, system.memory)
        changed["memory"] = policy.memory.model_copy(update={"reserved": reserved})
    return policy.model_copy(update=changed) if changed else policy


def reservation_mismatch(
    policy: CpuPolicySpec, system: SystemReservation, topology: Topology | None = None
) -> str:
    """How `memory.reserved` differs from what the Node keeps back; empty if it does not.

    Both are quantities that can be written into the policy, exact to the byte. An entry that keeps
    containers off memory apart from the CPUs does not count.

    The kubelet does not start if they differ. The planner follows the policy.
    Source: Kubernetes v1.36, memorymanager, `validateReservedMemory`.
    """
    if policy.memory.policy == "None" or not policy.memory.reserved or not system.memory:
        return ""
    kept_back, named = dict(system.memory), dict.fromkeys(dict(system.memory), 0)
    counted = (one for one in policy.memory.reserved if not keeps_all(one, topology))
    for reserved in counted:
        for resource, quantity in reserved_amounts(reserved):
            named[resource] = named.get(resource, 0) + whole(quantity)
    differing = [
        f"{as_quantity(named[resource])} of {resource}, and the Node keeps back "
        f"{as_quantity(kept_back.get(resource, 0))}"
        for resource in sorted(named)
        if named[resource] != kept_back.get(resource, 0)
    ]
    if not differing:
        return ""
    return (
        f"memory.reserved adds up to {'; '.join(differing)} (capacity less allocatable); make them "
        "equal, or remove memory.reserved"
    )


def cpu_reservation_mismatch(
    policy: CpuPolicySpec, system: SystemReservation, topology: Topology | None
) -> str:
    """How many CPUs more `reserved` takes than the Node keeps back; empty if it does not.

    The scheduler counts what the Node offers, in which these CPUs are, and binds pods for which
    none are left. CPUs that pods may not use anyway count as reserved, those that are offline do
    not: the capacity of the Node has none of them. A Node that keeps back more than is reserved
    only leaves CPUs to the shared pool.
    """
    if policy.mode == "None" or topology is None:
        return ""
    named = with_reserved(policy, topology, system).reserved
    if named.cpus is None:
        taken = (named.count or 1) + len(topology.withheld)
    else:
        taken = len(named.cpus & topology.online | topology.withheld)
    whole_cpus = ceil(system.cpu_millis / 1000)
    if taken <= whole_cpus:
        return ""
    written = policy.reserved.cpus is not None or policy.reserved.count is not None
    lower = f", or reserve {plural(whole_cpus, 'CPU')}" if written and whole_cpus else ""
    return (
        f"{plural(taken, 'CPU')} reserved, and the Node keeps back {system.cpu_millis / 1000:g} "
        "(capacity less allocatable): the scheduler can bind pods that lack up to "
        f"{plural(taken - whole_cpus, 'exclusive CPU')}. Let the kubelet keep back {taken} "
        f"(reservedSystemCPUs){lower}"
    )


def reserved_offline(policy: CpuPolicySpec, topology: Topology | None) -> str:
    """Which CPUs of `reserved.cpus` are offline; empty if none is. The others stay reserved."""
    if policy.mode == "None" or policy.reserved.cpus is None or topology is None:
        return ""
    offline = policy.reserved.cpus & topology.offline
    if not offline:
        return ""
    return (
        f"reserved.cpus names {offline}, which is offline; the others stay reserved. Bring it "
        "online, or remove it from reserved.cpus"
    )


def free_hugepages(reported: Iterable[FreeHugepages]) -> Capacity:
    """What the kernel has free, in bytes by resource and NUMA node; unreadable sizes are left out.

    An enforcer may report anything.
    """
    free: dict[str, dict[int, int]] = {}
    for numa_node in reported:
        for name, pages in numa_node.pages.items():
            with suppress(ValueError):
                at = free.setdefault(f"{HUGEPAGES_PREFIX}{name}", {})
                at[numa_node.numa_node] = pages * page_size_bytes(name)
    return free


def used_memory(reported: Iterable[UnboundMemory]) -> dict[str, dict[int, int]]:
    """What pods use on each NUMA node, by UID; what is no ID of a NUMA node is left out.

    An enforcer may report anything.
    """
    return {
        one.pod_uid: {
            int(node): count
            for node, count in one.bytes.items()
            if node.isascii() and node.isdecimal() and len(node) < 5
        }
        for one in reported
    }


def _in_proportion(topology: Topology, kept_back: Amounts) -> tuple[MemoryReservation, ...]:
    present = memory_of(topology)
    taken = {
        resource: _shares(size, present[resource], _unit_bytes(resource))
        for resource, size in kept_back
        if resource in present
    }
    return tuple(
        MemoryReservation(
            numa_node=numa_node.id,
            memory=str(taken.get(MEMORY, {}).get(numa_node.id, 0)),
            hugepages={
                resource.removeprefix(HUGEPAGES_PREFIX): str(at[numa_node.id])
                for resource, at in taken.items()
                if resource != MEMORY and at.get(numa_node.id)
            },
        )
        for numa_node in topology.numa_nodes
    )


def _unit_bytes(resource: str) -> int:
    if resource == MEMORY:
        return _PAGE_BYTES
    return page_size_bytes(resource.removeprefix(HUGEPAGES_PREFIX))


def _shares(size: int, present: Mapping[int, int], unit: int) -> dict[int, int]:
    """Divide a size in proportion to what is present; the last unit of a share is rounded.

    The shares add up to the size, rounded up to whole units, or to all that is present.
    """
    there = sum(present.values())
    size = min(size, there)
    shares, passed, given = {}, 0, 0
    for numa_node, mine in present.items():
        passed += mine
        until = -(-size * passed // (there * unit)) * unit if there else 0
        shares[numa_node] = min(mine, until - given)
        given += shares[numa_node]
    return shares
