"""Amounts of CPU, memory and huge pages in a pod, in the form that planning needs. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil
from sys import intern
from typing import Any, Final, NamedTuple

from numapin_api.quantity import QuantityError, millis, parse_quantity, whole
from numapin_api.topology import page_size_name
from numapin_operator.placement import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    Amounts,
    ContainerKind,
    PodLevel,
    amounts,
)

Resources = dict[str, Fraction]

CPU_AND_MEMORY: Final = (CPU, MEMORY)

NATIVE_PREFIX: Final = "kubernetes.io/"
"""Part of the names of resources with a prefix that are none of a device."""

_MAX_BYTES: Final = (1 << 63) - 1


class ContainerResources(NamedTuple):
    """What one container asks for."""

    kind: ContainerKind
    requests: Resources
    limits: Resources


def cpu_millis(requests: Resources) -> int:
    """The CPU request in thousandths, rounded up."""
    return ceil(requests.get(CPU, Fraction(0)) * 1000)


def unequal_amounts(requests: Resources, limits: Resources) -> Iterator[str]:
    """Why requests and limits of CPU and memory are not set and equal; nothing if they are."""
    for key, name in ((CPU, "CPU"), (MEMORY, "memory")):
        if not requests.get(key):
            yield f"it requests no {name}"
        elif key not in limits:
            yield f"it has no limit of {name}"
        elif requests[key] != limits[key]:
            yield f"its limit of {name} is not its request"


def memory_amounts(requests: Resources) -> tuple[tuple[str, int], ...]:
    """Memory and huge pages; no huge pages of a size are as good as that size not named."""
    return amounts(
        (intern(name), ceil(q))
        for name, q in requests.items()
        if name != CPU and (name == MEMORY or q > 0)
    )


@lru_cache(maxsize=256)
def canonical_resource(name: str) -> str | None:
    """The name of a resource as NodeAssignments have it; None for a size that no page can have.

    The API server accepts any quantity as a page size, such as `hugepages-2048Ki`; the kubelet
    reports and mounts the canonical one. Source: Kubernetes v1.36, `HugePageSizeFromResourceName`
    and `HugePageUnitSizeFromByteSize`.
    """
    if not name.startswith(HUGEPAGES_PREFIX):
        return name
    try:
        size = parse_quantity(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return None
    if not 0 < size <= _MAX_BYTES or size % 1024:
        return None
    return f"{HUGEPAGES_PREFIX}{page_size_name(int(size))}"


def pod_level(
    requests: Resources,
    limits: Resources,
    containers: Iterable[ContainerResources],
    granted: Resources | None = None,
) -> PodLevel | None:
    """What a pod requests as a whole; None if it has no `spec.resources`.

    Args:
        requests: of `spec.resources`.
        limits: the same.
        containers: the pod's. What the pod only limits, it requests as much as they do together.
        granted: what the kubelet reports that it has granted of CPU and memory; None if it does
            not say.
    """
    if not requests and not limits:
        return None
    asked = dict(requests)
    for name, limit in limits.items():
        asked.setdefault(name, _sum_of(containers, name) or limit)
    asked |= {name: q for name, q in (granted or {}).items() if name in asked}
    return PodLevel(cpu_millis(asked), memory_amounts(asked), granted is not None)


def device_counts(limits: Mapping[str, Any]) -> Amounts:
    """The extended resources of a container's limits, which its requests equal.

    Raises:
        QuantityError: an amount is no quantity, or negative.
    """
    counts = [(intern(name), whole(value)) for name, value in limits.items() if is_extended(name)]
    for name, count in counts:
        if count < 0:
            raise QuantityError(limits[name])
    return amounts(counts)


def qos_class(each: Sequence[tuple[Resources, Resources]]) -> str:
    """The QoS class by requests and limits. Source: Kubernetes v1.36, `ComputePodQOS`."""
    requests, limits = (_sum_positive(pair[side] for pair in each) for side in (0, 1))
    if not requests and not limits:
        return "BestEffort"
    complete = all(_positive(pair[1]).keys() == {CPU, MEMORY} for pair in each)
    return "Guaranteed" if complete and requests == limits else "Burstable"


def _sum_of(containers: Iterable[ContainerResources], name: str) -> Fraction:
    """The most that the containers request at a time.

    Source: Kubernetes, `AggregateContainerRequests`.
    """
    peak = sidecars = apps = Fraction(0)
    for one in containers:
        amount = one.requests.get(name, Fraction(0))
        if one.kind is ContainerKind.SIDECAR:
            sidecars += amount
        elif one.kind is ContainerKind.INIT:
            peak = max(peak, sidecars + amount)
        else:
            apps += amount
    return max(peak, sidecars + apps)


def _positive(resources: Resources) -> Resources:
    """CPU and memory, where an amount is given."""
    return {name: q for name, q in resources.items() if name in CPU_AND_MEMORY and q > 0}


def _sum_positive(each: Iterable[Resources]) -> Resources:
    """The CPU and memory of all of them together."""
    total: Resources = {}
    for resources in each:
        for name, quantity in _positive(resources).items():
            total[name] = total.get(name, Fraction(0)) + quantity
    return total


def is_counted(spec: Mapping[str, Any], status: Mapping[str, Any], qos: str) -> bool:
    """Whether a pod runs and the scheduler plug-in NodeResourceTopologyMatch calls it exclusive.

    This is any amount of an extended resource, and of a Guaranteed pod whole CPUs, memory and huge
    pages. Accepts any pod.
    Source: sigs.k8s.io/scheduler-plugins v0.34.7, pkg/noderesourcetopology, `AreExclusiveForPod`
    and `IsPodRelevantShared`.
    """
    if status.get("phase") != "Running":
        return False
    is_guaranteed = qos == "Guaranteed"
    return any(
        is_extended(name) or (is_guaranteed and _is_exclusive(name, amount))
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


def is_extended(name: str) -> bool:
    """Whether a device plug-in may have a resource of this name.

    Source: Kubernetes v1.34, pkg/apis/core/v1/helper, `IsNativeResource`.
    """
    return "/" in name and NATIVE_PREFIX not in name


def _is_exclusive(name: str, amount: object) -> bool:
    if name not in CPU_AND_MEMORY and not name.startswith(HUGEPAGES_PREFIX):
        return False
    try:
        count = whole(amount)
        return count > 0 and (name != CPU or count * 1000 == millis(amount))
    except QuantityError:
        return False
