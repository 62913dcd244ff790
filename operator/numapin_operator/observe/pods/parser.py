"""Parse a Pod, from the API server or from a file, into the slim `PodView`. Does no I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from sys import intern
from typing import Any, Final

from numapin_api.quantity import QuantityError, parse_quantity
from numapin_api.status.containers import NAME_LENGTH
from numapin_operator.observe.node_status import json_objects
from numapin_operator.observe.pods.annotation import of_annotations
from numapin_operator.observe.pods.claims import claims_of_containers
from numapin_operator.observe.pods.granted import (
    granted_to_containers,
    granted_to_pod,
    has_sandbox,
    was_edited,
)
from numapin_operator.observe.pods.mirror_pods import is_pod_uid, mirror_claim
from numapin_operator.observe.pods.origin import origin_of
from numapin_operator.observe.pods.resources import (
    CPU_AND_MEMORY,
    ContainerResources,
    Resources,
    canonical_resource,
    cpu_millis,
    device_counts,
    is_counted,
    memory_amounts,
    pod_level,
    qos_class,
    unequal_amounts,
)
from numapin_operator.observe.pods.shared_parts import shared_containers, shared_labels
from numapin_operator.observe.pods.virtual_machines import runs_in_virtual_machine
from numapin_operator.placement import (
    HUGEPAGES_PREFIX,
    Amounts,
    ContainerKind,
    ContainerView,
    PodFormatError,
    PodView,
)

MAX_CONTAINERS: Final = 256
"""Of a pod that can get CPUs, init containers included; 8,000 would take 0.3 s at each event."""

MAX_CLAIMS: Final = 64
"""ResourceClaims of a pod, counted for each container; each is one request to the API server."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_QOS_CLASSES: Final = frozenset({"Guaranteed", "Burstable", "BestEffort"})


def parse_pod(pod: Mapping[str, Any]) -> PodView:
    """Parse a Pod object. Missing requests default to the limits, as on the API server.

    Raises:
        PodFormatError: a field is missing or of the wrong type, a quantity does not parse, or the
            pod has more than `MAX_CONTAINERS` containers.
    """
    reader = _PodReader(pod)
    uid, containers = reader.uid(), tuple(reader.containers())
    return PodView(
        uid=uid,
        containers=shared_containers(containers),
        pod_level=pod_level(*reader.of_pod(), reader.of_containers, granted_to_pod(reader.status)),
        labels=shared_labels(reader.labels()),
        **_envelope(pod, reader.metadata, _reported_qos(reader.status) or reader.qos()),
    )


def parse_stored_pod(pod: Mapping[str, Any]) -> PodView:
    """Parse a Pod of the API server. One with a field that cannot be used has a `problem`."""
    try:
        view = parse_pod(pod)
    except PodFormatError as error:
        return unusable_pod(pod, f"{error.field}: {error.problem}")
    has_devices = any(one.devices or one.claims for one in view.containers)
    if has_devices and not has_sandbox(pod.get("status") or {}):
        view = replace(view, sandboxed=False)
    problem = runs_in_virtual_machine(view, pod["spec"])
    return replace(view, problem=problem) if problem else view


def unusable_pod(pod: Mapping[str, Any], problem: str) -> PodView:
    """A pod that cannot be parsed; nothing is assigned to it.

    Args:
        pod: the object, with the name, namespace and UID that the API server gave it.
        problem: what is wrong with it.
    """
    status = pod.get("status")
    reported = _reported_qos(status if isinstance(status, Mapping) else {})
    labels = pod["metadata"].get("labels")
    return PodView(
        uid=pod["metadata"]["uid"],
        containers=(),
        labels=labels if _is_labels(labels) else {},
        problem=problem,
        **_envelope(pod, pod["metadata"], reported or "BestEffort"),
    )


def _envelope(pod: Mapping[str, Any], metadata: Mapping[str, Any], qos: str) -> dict[str, Any]:
    """The fields of a view that do not depend on its containers; these never fail."""
    spec, status = (
        one if isinstance(one, Mapping) else {} for one in map(pod.get, ("spec", "status"))
    )
    return {
        "namespace": intern(str(metadata.get("namespace") or "default")),
        "name": str(metadata.get("name") or "(unnamed)"),
        "qos": intern(qos),
        "node": intern(str(spec.get("nodeName") or "")),
        "bound": _bound(metadata, status),
        "checked": status.get("phase") != "Pending" or _is_checked(metadata, status),
        "terminal": str(status.get("phase")) in _ENDED,
        "deleting": metadata.get("deletionTimestamp") is not None,
        "edited": was_edited(metadata),
        "mirror": mirror_claim(metadata),
        "origin": origin_of(metadata, spec),
        **of_annotations(metadata),
        "counted": is_counted(spec, status, qos),
    }


def _reported_qos(status: Mapping[str, Any]) -> str | None:
    reported = str(status.get("qosClass"))
    return reported if reported in _QOS_CLASSES else None


class _PodReader:
    """Parses one pod; every error names the pod."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self.name = "(unnamed)"
        self.metadata = self.mapping(pod, "metadata", "metadata")
        self.name = str(self.metadata.get("name") or "(unnamed)")
        self.spec = self.mapping(pod, "spec", "spec")
        self.status = self.mapping(pod, "status", "status")
        self._ended: frozenset[str] = frozenset()
        self.of_containers: list[ContainerResources] = []
        """Of those that `containers` has returned so far."""
        self._granted = granted_to_containers(self.status)
        self._claims = claims_of_containers(self.spec, self.status)
        if (count := sum(map(len, self._claims.values()))) > MAX_CLAIMS:
            problem = f"the containers use {count} claims; use at most {MAX_CLAIMS}"
            raise self._error("spec.resourceClaims", problem)

    def uid(self) -> str:
        """The pod's UID. That of a static pod is found later; see `mirror_pods`."""
        uid = self.metadata.get("uid")
        if not uid:
            raise self._error("metadata.uid", "is missing; give the pod a uid")
        if not isinstance(uid, str) or not is_pod_uid(uid):
            raise self._error("metadata.uid", f"{uid!r:.40} is not the UID of a pod")
        return uid

    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        labels = self.mapping(self.metadata, "labels", "metadata.labels")
        if not _is_labels(labels):
            raise self._error("metadata.labels", "must be texts")
        return labels

    def containers(self) -> Iterator[ContainerView]:
        """Init containers, then app containers."""
        lists = {key: self.spec.get(key) or [] for key in ("initContainers", "containers")}
        for key, listed in lists.items():
            if not isinstance(listed, list):
                raise self._error(f"spec.{key}", "must be a list of containers")
        if (count := sum(map(len, lists.values()))) > MAX_CONTAINERS:
            problem = f"{count} with spec.initContainers; give the pod at most {MAX_CONTAINERS}"
            raise self._error("spec.containers", problem)
        self._ended = frozenset(self._ended_init_containers())
        for key, listed in lists.items():
            field = f"spec.{key}"
            for index, container in enumerate(listed):
                yield self._container(container, f"{field}[{index}]", init=key != "containers")
        if not self.of_containers:
            raise self._error("spec.containers", "is missing; a pod has at least one container")

    def of_pod(self) -> tuple[Resources, Resources]:
        """Requests and limits of `spec.resources`, for the whole pod."""
        return self._resources(self.spec, "spec.resources", defaults=False)

    def qos(self) -> str:
        """The QoS class that the API server gives the pod."""
        if self.spec.get("resources") is not None:
            return qos_class([self.of_pod()])
        return qos_class([(one.requests, one.limits) for one in self.of_containers])

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
        if len(name) > NAME_LENGTH or not name.isprintable():
            raise self._error(f"{field}.name", f"{name!r:.80} is not the name of a container")
        requests, limits = self._resources(container, f"{field}.resources", defaults=True)
        kind = ContainerKind.APP
        if init:
            kind = (
                ContainerKind.SIDECAR
                if container.get("restartPolicy") == "Always"
                else ContainerKind.INIT
            )
        self.of_containers.append(ContainerResources(kind, requests, limits))
        granted = self._granted.get(name)
        in_force = requests | (granted or {})
        return ContainerView(
            name=intern(name),
            kind=kind,
            cpu_millis=cpu_millis(in_force),
            memory=memory_amounts(in_force),
            matched=not (unequal := tuple(unequal_amounts(requests, limits))),
            unequal=unequal,
            ended=kind is ContainerKind.INIT and name in self._ended,
            claims=self._claims.get(name, ()),
            granted=granted is not None,
            devices=self._devices(container, f"{field}.resources"),
        )

    def _devices(self, container: Mapping[str, Any], field: str) -> Amounts:
        try:
            return device_counts(self.mapping(container.get("resources"), "limits", field))
        except QuantityError as error:
            raise self._error(f"{field}.limits", str(error)) from error

    def _resources(self, parent: Any, field: str, *, defaults: bool) -> tuple[Resources, Resources]:
        resources = self.mapping(parent, "resources", field)
        requests = self._quantities(resources, "requests", field)
        limits = self._quantities(resources, "limits", field)
        return (limits | requests if defaults else requests), limits

    def _quantities(self, resources: Mapping[str, Any], key: str, field: str) -> Resources:
        found: Resources = {}
        for name, value in self.mapping(resources, key, f"{field}.{key}").items():
            if name in CPU_AND_MEMORY or name.startswith(HUGEPAGES_PREFIX):
                try:
                    quantity = parse_quantity(value)
                except QuantityError as error:
                    raise self._error(
                        f"{field}.{key}.{ascii(name)[1:-1]:.80}", str(error)
                    ) from error
                if known := canonical_resource(name):
                    found[known] = found.get(known, 0) + quantity
        return found

    def _ended_init_containers(self) -> Iterator[str]:
        for entry in json_objects(self.status.get("initContainerStatuses")):
            state = self.mapping(entry, "state", "status.initContainerStatuses[].state")
            ended = self.mapping(state, "terminated", "status.initContainerStatuses[].state")
            if ended.get("exitCode") == 0:
                yield str(entry.get("name"))

    def _error(self, field: str, problem: str) -> PodFormatError:
        return PodFormatError(self.name, field, problem)


def _bound(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    for condition in json_objects(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return str(condition.get("lastTransitionTime") or "")
    return str(metadata.get("creationTimestamp") or "")


def _is_checked(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether a scheduler has bound a pending pod, or its kubelet has accepted it.

    A static pod was accepted before its mirror pod was created. Binding sets the condition; of a
    pod that was created with a node, the kubelet sets both.
    Source: Kubernetes v1.36, registry/core/pod, `setPodHostAndAnnotations`.
    """
    return (
        "startTime" in status
        or mirror_claim(metadata) is not None
        or any(
            one.get("type") == "PodScheduled" and one.get("status") == "True"
            for one in json_objects(status.get("conditions"))
        )
    )


def _is_labels(labels: object) -> bool:
    return isinstance(labels, Mapping) and all(
        isinstance(text, str) for pair in labels.items() for text in pair
    )
