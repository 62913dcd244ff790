"""One node as a machine: who has what, what would fit, and what is refused.

Does no I/O.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.quantity import format_bytes
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec, Refusal
from numapin_api.topology import Topology
from numapin_cli.live.node_state import IN_FORCE, NodeState, memory_text
from numapin_operator.placement import CPU, NumaAmounts
from numapin_page.views.machine import machine
from numapin_page.views.node_row import Beside, node_row, rooms_of
from numapin_page.views.room import SIZES, Room

Json = dict[str, Any]

RESERVED, SHARED, OUTSIDE = "reserved", "shared", "outside"
"""What a CPU is that no container has to itself; `outside`: neither reserved nor shared."""


def node_page(state: NodeState, beside: Beside) -> Json:
    """All that the page shows of a node."""
    page: Json = {"row": node_row(state, beside)}
    ready = state.ready
    page["message"] = state.problem or (ready.message if ready and not state.is_ready else "")
    if state.view is None:
        return page
    spec, topology = state.view.spec, state.view.topology
    page["containers"] = [_container(state, one) for one in spec.containers]
    page["refused"] = [_refused(one) for one in (*spec.refused, *(spec.refused_resizes or ()))]
    page["refusedOmitted"] = spec.refused_omitted or 0
    page["pools"] = _pools(spec)
    page["drift"] = dict(state.status.drift_causes)
    page["rooms"] = [_room(one) for one in rooms_of(state, beside)]
    page["sizes"] = list(SIZES)
    if topology is not None:
        page["machine"] = machine(topology)
        number = {one.key: index for index, one in enumerate(spec.containers)}
        page["cpus"] = cpu_uses(spec, topology, number)
    return page


def cpu_uses(
    spec: NodeAssignmentSpec, topology: Topology, number: Mapping[tuple[str, str], int]
) -> Mapping[str, int | str]:
    """What each online CPU is: the number of the container that has it, or one of `SHARED`, ...

    While two containers of a pod share CPUs, the last one in the list is shown.
    """
    pools = spec.pools
    reserved = pools.reserved if pools else CpuSet()
    shared = pools.shared if pools else topology.online
    uses: dict[str, int | str] = {}
    for cpu in topology.online:
        uses[str(cpu)] = RESERVED if cpu in reserved else SHARED if cpu in shared else OUTSIDE
    for entry in spec.containers:
        for cpu in entry.cpus & topology.online:
            uses[str(cpu)] = number[entry.key]
    return uses


def amounts_left(found: Mapping[int, NumaAmounts], why: str) -> Json:
    """What each NUMA node has left by the operator's own count.

    Args:
        found: that count; empty if it is not known.
        why: why it is not known; empty if it is.
    """
    left = [
        {"numaNode": number, "resource": name, **_amount(name, *amount)}
        for number, amounts in found.items()
        for name, amount in amounts.items()
    ]
    return {"left": left, "leftUnknown": why}


def _amount(resource: str, _capacity: int, allocatable: int, available: int) -> Json:
    if resource == CPU:
        return {"available": str(available), "allocatable": str(allocatable)}
    texts = (format_bytes(one, down=True) for one in (available, allocatable))
    return dict(zip(("available", "allocatable"), texts, strict=True))


def _container(state: NodeState, entry: ContainerAssignment) -> Json:
    actual, moving = state.in_kernel(entry), entry.moving
    notes = [word for word in ("outdated", "claimed") if getattr(entry, word)]
    if moving is not None:
        whom = f" for {moving.namespace}/{moving.pod}" if moving.pod else ""
        notes.append(f"being moved off CPUs {moving.leaving}{whom}")
    return {
        "namespace": entry.namespace,
        "pod": entry.pod,
        "container": entry.container,
        "cpus": str(entry.cpus),
        "count": len(entry.cpus),
        "exclusive": bool(entry.exclusive),
        "numaNodes": str(entry.mems or _numa_nodes(state, entry.cpus)),
        "memory": memory_text(entry),
        "inKernel": "" if actual == IN_FORCE else actual,
        "notes": notes,
    }


def _numa_nodes(state: NodeState, cpus: CpuSet) -> MemSet:
    """Those of some CPUs; none if the hardware is not known."""
    topology = state.view.topology if state.view else None
    found = topology.numa_cpus.items() if topology else ()
    return MemSet(number for number, there in found if not there.isdisjoint(cpus))


def _refused(one: Refusal) -> Json:
    return {
        "namespace": one.namespace,
        "pod": one.pod,
        "container": one.container or "",
        "reason": one.reason,
        "message": one.message,
    }


def _pools(spec: NodeAssignmentSpec) -> Json:
    pools = spec.pools
    return {"reserved": str(pools.reserved), "shared": str(pools.shared)} if pools else {}


def _room(room: Room) -> Json:
    fits: Sequence[int] = [len(room.free) // size for size in SIZES]
    return {
        "numaNode": room.numa_node,
        "allocatable": len(room.allocatable),
        "free": len(room.free),
        "fits": fits,
    }
