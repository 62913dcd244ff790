"""Parse a Pod, from the API server or from a file, into the slim `PodView`. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil
from sys import intern
from typing import Any, Final

from numapin_api.quantity import QuantityError, parse_quantity
from numapin_operator.placement import (
    CPU,
    HUGEPAGES_PREFIX,
    MEMORY,
    ContainerKind,
    ContainerView,
    Origin,
    PodFormatError,
    PodLevel,
    PodView,
    amounts,
)

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On the API server's copy of a static pod: the UID under which the kubelet runs it."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_QOS_CLASSES: Final = frozenset({"Guaranteed", "Burstable", "BestEffort"})

CRITICAL_PRIORITY: Final = 2_000_000_000
"""The lowest priority of a critical pod. Source: Kubernetes, `scheduling.SystemCriticalPriority`.
"""

SHARED_ORIGINS: Final = 16_384
"""How many controllers are remembered, so that their pods share one value."""

_CRITICAL_CLASSES: Final = frozenset({"system-node-critical", "system-cluster-critical"})

Resources = dict[str, Fraction]


def parse_pod(pod: Mapping[str, Any]) -> PodView:
    """Parse a Pod object. Missing requests default to the limits, as on the API server.

    Raises:
        PodFormatError: a field is missing or of the wrong type, or a quantity does not parse.
    """
    reader = _PodReader(pod)
    containers = tuple(reader.containers())
    status = reader.mapping(pod, "status", "status")
    reported = status.get("qosClass")
    metadata = reader.metadata
    return PodView(
        uid=reader.uid(),
        namespace=intern(str(metadata.get("namespace") or "default")),
        name=reader.name,
        qos=intern(reported) if reported in _QOS_CLASSES else reader.qos(),
        containers=containers,
        pod_level=reader.pod_level(),
        node=intern(str(reader.spec.get("nodeName") or "")),
        bound=_bound(metadata, status),
        terminal=status.get("phase") in _ENDED,
        deleting=metadata.get("deletionTimestamp") is not None,
        labels=reader.mapping(metadata, "labels", "metadata.labels"),
        origin=origin_of(pod),
    )


def origin_of(pod: Mapping[str, Any]) -> Origin:
    """Who created a pod, and how important it is; accepts any pod."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    priority = spec.get("priority")
    if spec.get("priorityClassName") in _CRITICAL_CLASSES:
        priority = CRITICAL_PRIORITY
    known = priority if isinstance(priority, int) else 0
    for owner in _objects(metadata.get("ownerReferences")):
        if owner.get("controller") is True:
            return _shared_origin(str(owner.get("kind")), str(owner.get("uid")), known)
    return _shared_origin("", "", known)


@lru_cache(SHARED_ORIGINS)
def _shared_origin(kind: str, uid: str, priority: int) -> Origin:
    return Origin(intern(kind), uid, priority)


class _PodReader:
    """Parses one pod; every error names the pod."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self.name = "(unnamed)"
        self.metadata = self.mapping(pod, "metadata", "metadata")
        self.name = str(self.metadata.get("name") or "(unnamed)")
        self.spec = self.mapping(pod, "spec", "spec")
        self._ended = frozenset(self._ended_init_containers(pod))
        self._resources_of_each: list[tuple[Resources, Resources]] = []
        self._parts: list[tuple[ContainerKind, Resources]] = []

    def uid(self) -> str:
        """The UID that the pod's cgroups carry."""
        annotations = self.mapping(self.metadata, "annotations", "metadata.annotations")
        uid = annotations.get(MIRROR_ANNOTATION) or self.metadata.get("uid")
        if not isinstance(uid, str) or not uid:
            raise self._error("metadata.uid", "is missing; give the pod a uid")
        return uid

    def containers(self) -> Iterator[ContainerView]:
        """Init containers, then app containers."""
        for key in ("initContainers", "containers"):
            field = f"spec.{key}"
            listed = self.spec.get(key) or []
            if not isinstance(listed, list):
                raise self._error(field, "must be a list of containers")
            for index, container in enumerate(listed):
                yield self._container(container, f"{field}[{index}]", init=key != "containers")
        if not self._resources_of_each:
            raise self._error("spec.containers", "is missing; a pod has at least one container")

    def pod_level(self) -> PodLevel | None:
        """The requests of `spec.resources`, for the whole pod; None if it has none."""
        requests, limits = self._resources(self.spec, "spec.resources", defaults=False)
        if not requests and not limits:
            return None
        for name, limit in limits.items():
            requests.setdefault(name, self._sum_of_containers(name) or limit)
        return PodLevel(_cpu_millis(requests), _memory(requests))

    def qos(self) -> str:
        """The QoS class. Source: Kubernetes v1.36, `ComputePodQOS`."""
        asked = self._resources_of_each
        if self.spec.get("resources") is not None:
            asked = [self._resources(self.spec, "spec.resources", defaults=False)]
        requests, limits = (_sum(pair[side] for pair in asked) for side in (0, 1))
        if not requests and not limits:
            return "BestEffort"
        complete = all(_cpu_and_memory(pair[1]).keys() == {CPU, MEMORY} for pair in asked)
        return "Guaranteed" if complete and requests == limits else "Burstable"

    def mapping(self, parent: Any, key: str, field: str) -> Mapping[str, Any]:
        """The object under a key; empty if the key is not set."""
        found = parent.get(key) if isinstance(parent, Mapping) else parent
        if found is None:
            return {}
        if not isinstance(found, Mapping):
            raise self._error(field, f"must be an object, not {found!r:.40}")
        return found

    def _container(self, container: Any, field: str, *, init: bool) -> ContainerView:
        if not isinstance(container, Mapping):
            raise self._error(field, f"must be an object, not {container!r:.40}")
        name = container.get("name")
        if not isinstance(name, str) or not name:
            raise self._error(f"{field}.name", "is missing; give the container a name")
        requests, limits = self._resources(container, f"{field}.resources", defaults=True)
        kind = ContainerKind.APP
        if init:
            kind = (
                ContainerKind.SIDECAR
                if container.get("restartPolicy") == "Always"
                else ContainerKind.INIT
            )
        self._resources_of_each.append((requests, limits))
        self._parts.append((kind, requests))
        return ContainerView(
            name=intern(name),
            kind=kind,
            cpu_millis=_cpu_millis(requests),
            memory=_memory(requests),
            matched=all(
                requests.get(key) and requests[key] == limits.get(key) for key in _CPU_AND_MEMORY
            ),
            ended=kind is ContainerKind.INIT and name in self._ended,
        )

    def _resources(self, parent: Any, field: str, *, defaults: bool) -> tuple[Resources, Resources]:
        resources = self.mapping(parent, "resources", field)
        requests = self._quantities(resources, "requests", field)
        limits = self._quantities(resources, "limits", field)
        return (limits | requests if defaults else requests), limits

    def _quantities(self, resources: Mapping[str, Any], key: str, field: str) -> Resources:
        found = {}
        for name, value in self.mapping(resources, key, f"{field}.{key}").items():
            if name in _CPU_AND_MEMORY or name.startswith(HUGEPAGES_PREFIX):
                try:
                    found[name] = parse_quantity(value)
                except QuantityError as error:
                    raise self._error(f"{field}.{key}.{name}", str(error)) from error
        return found

    def _sum_of_containers(self, name: str) -> Fraction:
        """The most that the containers request at a time.

        Source: Kubernetes, `AggregateContainerRequests`.
        """
        peak = sidecars = apps = Fraction(0)
        for kind, requests in self._parts:
            amount = requests.get(name, Fraction(0))
            if kind is ContainerKind.SIDECAR:
                sidecars += amount
            elif kind is ContainerKind.INIT:
                peak = max(peak, sidecars + amount)
            else:
                apps += amount
        return max(peak, sidecars + apps)

    def _ended_init_containers(self, pod: Mapping[str, Any]) -> Iterator[str]:
        status = self.mapping(pod, "status", "status")
        for entry in _objects(status.get("initContainerStatuses")):
            state = self.mapping(entry, "state", "status.initContainerStatuses[].state")
            ended = self.mapping(state, "terminated", "status.initContainerStatuses[].state")
            if ended.get("exitCode") == 0:
                yield str(entry.get("name"))

    def _error(self, field: str, problem: str) -> PodFormatError:
        return PodFormatError(self.name, field, problem)


_CPU_AND_MEMORY: Final = (CPU, MEMORY)


def _cpu_millis(requests: Resources) -> int:
    return ceil(requests.get(CPU, Fraction(0)) * 1000)


def _memory(requests: Resources) -> tuple[tuple[str, int], ...]:
    return amounts((intern(name), ceil(q)) for name, q in requests.items() if name != CPU)


def _cpu_and_memory(resources: Resources) -> Resources:
    return {name: q for name, q in resources.items() if name in _CPU_AND_MEMORY and q > 0}


def _sum(each: Iterable[Resources]) -> Resources:
    total: Resources = {}
    for resources in each:
        for name, quantity in _cpu_and_memory(resources).items():
            total[name] = total.get(name, Fraction(0)) + quantity
    return total


def _bound(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    for condition in _objects(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return str(condition.get("lastTransitionTime") or "")
    return str(metadata.get("creationTimestamp") or "")


def _objects(listed: object) -> Sequence[Mapping[str, Any]]:
    if not isinstance(listed, list):
        return ()
    return [entry for entry in listed if isinstance(entry, Mapping)]
