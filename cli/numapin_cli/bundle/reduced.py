"""Objects with only the fields that planning and support need: what is not listed is left out.

Does no I/O.
"""

from collections.abc import Mapping
from typing import Any, Final

from numapin_api.names import NODE_MODE_ANNOTATION
from numapin_operator.observe.pods.mirror_pods import MIRROR_ANNOTATION
from numapin_operator.observe.resource_slices import STANDARD

Json = dict[str, Any]
Shape = Mapping[str, Any]
"""Field to None (all of it), to the shape of an object, or to `[shape]`, of each in a list."""

LEFT_OUT: Final = (
    "Secrets and ConfigMaps: they are not read",
    "environment variables, commands and arguments of containers (of numapin's own containers, the"
    " arguments are in it, with the values of those that may hold a credential masked)",
    "volumes, image names and image pull secrets of pods that are not numapin's",
    f"annotations, except {MIRROR_ANNOTATION} and {NODE_MODE_ANNOTATION}; managedFields",
    "addresses, machine IDs and images of Nodes",
    "the parameters of ResourceClaims",
)
"""What no report has."""

_CONDITIONS: Final = [{"type": None, "status": None, "reason": None, "lastTransitionTime": None}]
_OWNERS: Final = [{"apiVersion": None, "kind": None, "name": None, "uid": None, "controller": None}]
_METADATA: Final[Shape] = {
    "name": None,
    "namespace": None,
    "uid": None,
    "resourceVersion": None,
    "generation": None,
    "creationTimestamp": None,
    "deletionTimestamp": None,
    "labels": None,
    "finalizers": None,
    "ownerReferences": _OWNERS,
    "annotations": {MIRROR_ANNOTATION: None, NODE_MODE_ANNOTATION: None},
}
_RESOURCES: Final[Shape] = {
    "requests": None,
    "limits": None,
    "claims": [{"name": None, "request": None}],
}
_CONTAINER: Final[Shape] = {
    "name": None,
    "restartPolicy": None,
    "resources": _RESOURCES,
    "resizePolicy": [{"resourceName": None, "restartPolicy": None}],
}
_STATE: Final[Shape] = {
    "running": {"startedAt": None},
    "waiting": {"reason": None},
    "terminated": {"exitCode": None, "reason": None, "signal": None, "finishedAt": None},
}
_CONTAINER_STATUS: Final[Shape] = {
    "name": None,
    "ready": None,
    "started": None,
    "restartCount": None,
    "containerID": None,
    "resources": _RESOURCES,
    "allocatedResources": None,
    "state": _STATE,
    "lastState": _STATE,
}
_POD: Final[Shape] = {
    "metadata": _METADATA,
    "spec": {
        "nodeName": None,
        "priority": None,
        "priorityClassName": None,
        "runtimeClassName": None,
        "overhead": None,
        "hostNetwork": None,
        "schedulerName": None,
        "resources": _RESOURCES,
        "resourceClaims": [
            {"name": None, "resourceClaimName": None, "resourceClaimTemplateName": None}
        ],
        "initContainers": [_CONTAINER],
        "containers": [_CONTAINER],
    },
    "status": {
        "phase": None,
        "qosClass": None,
        "reason": None,
        "startTime": None,
        "resize": None,
        "resources": _RESOURCES,
        "allocatedResources": None,
        "conditions": _CONDITIONS,
        "initContainerStatuses": [_CONTAINER_STATUS],
        "containerStatuses": [_CONTAINER_STATUS],
        "resourceClaimStatuses": [{"name": None, "resourceClaimName": None}],
        "extendedResourceClaimStatus": {
            "resourceClaimName": None,
            "requestMappings": [{"containerName": None, "requestName": None, "resourceName": None}],
        },
    },
}
_NODE: Final[Shape] = {
    "metadata": _METADATA,
    "spec": {"taints": None, "unschedulable": None},
    "status": {
        "capacity": None,
        "allocatable": None,
        "conditions": _CONDITIONS,
        "nodeInfo": {
            "bootID": None,
            "kernelVersion": None,
            "osImage": None,
            "containerRuntimeVersion": None,
            "kubeletVersion": None,
            "operatingSystem": None,
            "architecture": None,
        },
        "features": None,
        "runtimeHandlers": None,
    },
}
_OURS: Final[Shape] = {"metadata": _METADATA, "spec": None, "status": None}
_PLACES: Final = dict.fromkeys(f"{STANDARD}{one}" for one in ("numaNode", "pciBusID", "pcieRoot"))
_RESULTS: Final = [{"request": None, "driver": None, "pool": None, "device": None}]
_EVENT: Final[Shape] = {
    "metadata": {"namespace": None, "creationTimestamp": None},
    "type": None,
    "reason": None,
    "note": None,
    "action": None,
    "eventTime": None,
    "series": None,
    "deprecatedCount": None,
    "deprecatedLastTimestamp": None,
    "reportingController": None,
    "regarding": {"kind": None, "namespace": None, "name": None, "uid": None},
}

SHAPES: Final[Mapping[str, Shape]] = {
    "Pod": _POD,
    "Node": _NODE,
    "Namespace": {"metadata": _METADATA, "status": {"phase": None}},
    "CpuPolicy": _OURS,
    "NodeAssignment": _OURS,
    "NodeReport": _OURS,
    "NodeTopology": _OURS,
    "ResourceClaim": {
        "metadata": _METADATA,
        "status": {
            "allocation": {"devices": {"results": _RESULTS}},
            "reservedFor": [{"resource": None, "name": None, "uid": None}],
        },
    },
    "ResourceSlice": {
        "metadata": _METADATA,
        "spec": {
            "driver": None,
            "nodeName": None,
            "pool": None,
            "devices": [{"name": None, "attributes": {**_PLACES, "numaNode": None}}],
        },
    },
    "Event": _EVENT,
}
"""What is kept of each kind."""


def reduced(kind: str, body: Mapping[str, Any]) -> Json:
    """An object with the fields of its kind's shape; its kind and apiVersion are kept."""
    kept = {key: body[key] for key in ("apiVersion", "kind") if key in body}
    found = _kept(body, SHAPES[kind])
    assert isinstance(found, dict)
    return kept | found


def _kept(value: object, shape: Any) -> object:
    """What a shape keeps of a value; a value of another form than the shape's is kept if small."""
    if shape is None:
        return value
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _odd(value)
        return [_kept(one, shape[0]) for one in value]
    if not isinstance(value, Mapping):
        return _odd(value)
    return {key: _kept(value[key], inner) for key, inner in shape.items() if key in value}


def _odd(value: object) -> object:
    """A value that no API server has here: numbers and nothing are kept, texts are not."""
    return value if value is None or isinstance(value, int | float) else "left out"
