"""What a Node's status says: what its kubelet offers and keeps back, and whether it is served.

Does no I/O.
"""

from collections.abc import Mapping
from typing import Any

from numapin_api.conditions.reasons import Reason
from numapin_api.quantity import millis, whole
from numapin_operator.placement import (
    HUGEPAGES_PREFIX,
    MEMORY,
    Allocatable,
    SystemReservation,
    amounts,
)

Json = Mapping[str, Any]


def system_reservation(status: Json) -> SystemReservation:
    """Capacity less allocatable.

    The kubelet takes the capacity of huge pages off the allocatable memory too.
    Source: Kubernetes v1.36, kubelet/nodestatus, `MachineInfo`.
    """
    capacity, allocatable = json_object(status, "capacity"), json_object(status, "allocatable")
    cpu = millis(capacity.get("cpu", "0"))
    sizes = {
        name: whole(amount)
        for name, amount in capacity.items()
        if name == MEMORY or name.startswith(HUGEPAGES_PREFIX)
    }
    kept_back = {
        name: size - whole(allocatable[name]) for name, size in sizes.items() if name in allocatable
    }
    if MEMORY in kept_back:
        kept_back[MEMORY] -= sum(sizes.values()) - sizes[MEMORY]
    return SystemReservation(
        cpu_millis=cpu - millis(allocatable.get("cpu", f"{cpu}m")),
        memory=amounts((name, size) for name, size in kept_back.items() if size > 0),
    )


def allocatable(status: Json) -> Allocatable | None:
    """What the node offers to pods; None if it does not say so yet."""
    offered = json_object(status, "allocatable")
    if not offered.keys() >= {"cpu", MEMORY, "pods"}:
        return None
    return Allocatable(millis(offered["cpu"]), whole(offered[MEMORY]), whole(offered["pods"]))


def not_served(status: Json) -> Reason | None:
    """Why no enforcer answers on a node. One that has never reported may be starting."""
    system = json_object(status, "nodeInfo").get("operatingSystem")
    if isinstance(system, str) and system and system.lower() != "linux":
        return Reason.NOT_LINUX
    for one in json_objects(status.get("conditions")):
        if one.get("type") == "Ready" and one.get("status") != "True":
            return Reason.NODE_NOT_READY
    return None


def json_object(parent: Json, key: str) -> Json:
    """The object under a key; empty if there is none."""
    found = parent.get(key)
    return found if isinstance(found, Mapping) else {}


def json_objects(listed: object) -> list[Json]:
    """The objects of a list; none if it is no list."""
    if not isinstance(listed, list):
        return []
    return [entry for entry in listed if isinstance(entry, Mapping)]
