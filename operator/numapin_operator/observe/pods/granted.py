"""What the kubelet has granted to a pod; before it grants a resize, the earlier requests.

A resize changes the spec at once. The kubelet grants it later, or never, and reports what it has
granted in the status. Does no I/O.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from numapin_api.quantity import QuantityError, parse_quantity
from numapin_operator.observe.node_status import json_objects
from numapin_operator.observe.pods.resources import CPU_AND_MEMORY, Resources

_MOST: Final = 1 << 62
"""Far more than any machine has, in CPUs or bytes; a node may report anything."""

_STATUSES: Final = ("initContainerStatuses", "containerStatuses")


def granted_to_containers(status: Mapping[str, Any]) -> dict[str, Resources]:
    """CPU and memory granted to each container, by name; those without a usable report lack.

    Source: Kubernetes v1.36, kubelet, `convertToAPIContainerStatuses`: `allocatedResources`.
    """
    found: dict[str, Resources] = {}
    for entry in _entries(status):
        name = entry.get("name")
        granted = _usable(entry.get("allocatedResources"))
        if isinstance(name, str) and granted is not None:
            found[name] = granted
    return found


def granted_to_pod(status: Mapping[str, Any]) -> Resources | None:
    """CPU and memory granted to a pod as a whole; None if that is not reported."""
    return _usable(status.get("allocatedResources"))


def was_edited(metadata: Mapping[str, Any]) -> bool:
    """Whether the spec was changed after the pod was created. Source: KEP-5067."""
    generation = metadata.get("generation")
    return isinstance(generation, int) and generation > 1


def _entries(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in _STATUSES:
        listed = status.get(key)
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, Mapping):
                yield entry


def _usable(reported: object) -> Resources | None:
    """The amounts of CPU and memory; None if one is no quantity, negative, or absurdly large."""
    if not isinstance(reported, Mapping) or not reported:
        return None
    found: Resources = {}
    for name in CPU_AND_MEMORY:
        if name not in reported:
            continue
        try:
            quantity = parse_quantity(reported[name])
        except QuantityError:
            return None
        if not 0 <= quantity <= _MOST:
            return None
        found[name] = quantity
    return found


def has_sandbox(status: Mapping[str, Any]) -> bool:
    """Whether the kubelet has made the pod's sandbox, by its own report.

    A kubelet before 1.29 does not say so; it counts from when that has accepted the pod.
    Source: Kubernetes v1.36, api/core/v1, `PodReadyToStartContainers`.
    """
    for one in json_objects(status.get("conditions")):
        if one.get("type") == "PodReadyToStartContainers":
            return one.get("status") == "True" or status.get("phase") != "Pending"
    return "startTime" in status
