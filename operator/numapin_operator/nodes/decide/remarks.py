"""What an administrator should know about a policy that is in force on a node.

Does no I/O.
"""

from collections.abc import Iterator
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.meta.modes import AUDIT
from numapin_api.text import cut_text
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


_NOT_WRITTEN: Final = "mode Audit: what is planned is reported, and nothing is written"

WRITER_LENGTH: Final = 200
"""Characters of what others call themselves, in a message."""


def remarks(
    policy: CpuPolicySpec,
    topology: Topology | None,
    node: NodeView,
    other_writer: str | None = None,
) -> Iterator[Remark]:
    """The remarks, the most urgent first, each with its reason and a message.

    Args:
        policy: what is in force on the node.
        topology: its hardware; None if that is not known.
        node: the Node.
        other_writer: who else writes its NodeResourceTopology; None if nobody does.
    """
    found = (
        (Reason.AUDITED, _NOT_WRITTEN if policy.mode == AUDIT else ""),
        (Reason.RESERVED_CPUS_OFFLINE, reserved_offline(policy, topology)),
        (Reason.CPU_RESERVATION_DIFFERS, _cpu_reservation(policy, topology, node)),
        (Reason.TOPOLOGY_OF_ANOTHER_WRITER, _not_published(other_writer)),
        (Reason.CROSSING_TOPOLOGY, crossing_groups(policy, topology)),
        (Reason.MEMORY_RESERVATION_DIFFERS, reservation_mismatch(policy, node.system, topology)),
        (Reason.MEMORY_WITHOUT_CPUS, memory_without_cpus(policy, topology)),
        (Reason.KUBEVIRT_CPU_MANAGER, no_dedicated_cpus(policy, node.labels)),
    )
    return ((reason, message) for reason, message in found if message)


def _cpu_reservation(policy: CpuPolicySpec, topology: Topology | None, node: NodeView) -> str:
    """How `reserved` differs from the Node; empty while the Node does not say what it offers."""
    return cpu_reservation_mismatch(policy, node.system, topology) if node.allocatable else ""


def _not_published(other_writer: str | None) -> str:
    """Why the NodeResourceTopology does not say what numapin knows; empty if it does."""
    if other_writer is None:
        return ""
    return f"not published, the object has another writer: {cut_text(other_writer, WRITER_LENGTH)}"


def joined(found: Iterator[Remark]) -> Remark | None:
    """The first remark, whose message has the others with their reasons; None without any."""
    first = next(found, None)
    if first is None:
        return None
    reason, message = first
    return reason, "; ".join((message, *(f"{other}: {text}" for other, text in found)))
