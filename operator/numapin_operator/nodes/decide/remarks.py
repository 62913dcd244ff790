"""What an administrator should know about a policy that is in force on a node.

Does no I/O.
"""

from collections.abc import Iterator

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.topology import Topology
from numapin_operator.nodes.decide.kubevirt import no_dedicated_cpus
from numapin_operator.observe.records import NodeView
from numapin_operator.placement import (
    cpu_reservation_mismatch,
    crossing_groups,
    memory_without_cpus,
    reservation_mismatch,
    reserved_offline,
)

Remark = tuple[Reason, str]


def remarks(policy: CpuPolicySpec, topology: Topology | None, node: NodeView) -> Iterator[Remark]:
    """The remarks, the most urgent first, each with its reason and a message."""
    found = (
        (Reason.RESERVED_CPUS_OFFLINE, reserved_offline(policy, topology)),
        (Reason.CPU_RESERVATION_DIFFERS, _cpu_reservation(policy, topology, node)),
        (Reason.CROSSING_TOPOLOGY, crossing_groups(policy, topology)),
        (Reason.MEMORY_RESERVATION_DIFFERS, reservation_mismatch(policy, node.system, topology)),
        (Reason.MEMORY_WITHOUT_CPUS, memory_without_cpus(policy, topology)),
        (Reason.KUBEVIRT_CPU_MANAGER, no_dedicated_cpus(policy, node.labels)),
    )
    return ((reason, message) for reason, message in found if message)


def _cpu_reservation(policy: CpuPolicySpec, topology: Topology | None, node: NodeView) -> str:
    """How `reserved` differs from the Node; empty while the Node does not say what it offers."""
    return cpu_reservation_mismatch(policy, node.system, topology) if node.allocatable else ""


def joined(found: Iterator[Remark]) -> Remark | None:
    """The first remark, whose message has the others with their reasons; None without any."""
    first = next(found, None)
    if first is None:
        return None
    reason, message = first
    return reason, "; ".join((message, *(f"{other}: {text}" for other, text in found)))
