"""Which pods a scheduler with the plug-in NodeResourceTopologyMatch expects to be accounted for.

Source: sigs.k8s.io/scheduler-plugins v0.34.7, pkg/noderesourcetopology, `AreExclusiveForPod` and
`IsPodRelevantShared`. Does no I/O.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from numapin_api.quantity import QuantityError, millis, whole
from numapin_operator.placement import CPU, HUGEPAGES_PREFIX, MEMORY

_NATIVE: Final = "kubernetes.io/"
"""Part of the names of resources with a prefix that are none of a device."""


def is_counted(spec: Mapping[str, Any], status: Mapping[str, Any], qos: str) -> bool:
    """Whether a pod runs and has what the plug-in takes for exclusive; accepts any pod.

    This is any amount of an extended resource, and of a Guaranteed pod whole CPUs, memory and huge
    pages.
    """
    if status.get("phase") != "Running":
        return False
    is_guaranteed = qos == "Guaranteed"
    return any(
        _is_extended(name) or (is_guaranteed and _is_exclusive(name, amount))
        for name, amount in _requests(spec)
    )


def _requests(spec: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Each request of each container. Those that only have limits were completed on creation."""
    for key in ("containers", "initContainers"):
        listed = spec.get(key)
        for container in listed if isinstance(listed, list) else ():
            resources = container.get("resources") if isinstance(container, Mapping) else None
            requests = resources.get("requests") if isinstance(resources, Mapping) else None
            if isinstance(requests, Mapping):
                yield from requests.items()


def _is_extended(name: str) -> bool:
    """Source: Kubernetes v1.34, pkg/apis/core/v1/helper, `IsNativeResource`."""
    return "/" in name and _NATIVE not in name


def _is_exclusive(name: str, amount: object) -> bool:
    if name not in (CPU, MEMORY) and not name.startswith(HUGEPAGES_PREFIX):
        return False
    try:
        count = whole(amount)
        return count > 0 and (name != CPU or count * 1000 == millis(amount))
    except QuantityError:
        return False
