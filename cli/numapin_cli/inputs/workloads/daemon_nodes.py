"""On which nodes a DaemonSet has a pod.

Source: Kubernetes v1.36, pkg/controller/daemon, `NodeShouldRunDaemonPod`: the node has the labels
of nodeSelector and of the required node affinity, and no taint that is not tolerated.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from numapin_cli.inputs.manifests import section

_NO_SCHEDULE: Final = "NoSchedule"
_NO_EXECUTE: Final = "NoExecute"
_EFFECTS: Final = frozenset({_NO_SCHEDULE, _NO_EXECUTE})

_TOLERATED: Final = {
    "node.kubernetes.io/not-ready": _NO_EXECUTE,
    "node.kubernetes.io/unreachable": _NO_EXECUTE,
    "node.kubernetes.io/disk-pressure": _NO_SCHEDULE,
    "node.kubernetes.io/memory-pressure": _NO_SCHEDULE,
    "node.kubernetes.io/pid-pressure": _NO_SCHEDULE,
    "node.kubernetes.io/unschedulable": _NO_SCHEDULE,
}
"""The taints that every pod of a DaemonSet tolerates, with the only effect for which it does."""

_ON_THE_HOST: Final = {"node.kubernetes.io/network-unavailable": _NO_SCHEDULE}
"""The same, of a pod in the network of its host."""


def runs_on(template: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Whether the controller creates a pod of this template on a node."""
    spec, metadata = section(template, "spec"), section(node, "metadata")
    if spec.get("nodeName") not in {None, "", metadata.get("name")}:
        return False
    labels = section(metadata, "labels")
    wanted = section(spec, "nodeSelector")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return _has_affinity(spec, metadata) and all(
        _is_tolerated(spec, taint)
        for taint in _objects(section(node, "spec"), "taints")
        if taint.get("effect") in _EFFECTS
    )


def _has_affinity(spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    affinity = section(section(spec, "affinity"), "nodeAffinity")
    required = section(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    labels = section(metadata, "labels")
    fields = {"metadata.name": metadata.get("name")}
    for term in _objects(required, "nodeSelectorTerms"):
        asked = [(one, labels) for one in _objects(term, "matchExpressions")]
        asked += [(one, fields) for one in _objects(term, "matchFields")]
        if asked and all(_matches(one, known) for one, known in asked):
            return True
    return False


def _matches(expression: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether one expression of a term holds; one that is malformed does not."""
    value = known.get(str(expression.get("key")))
    listed = expression.get("values")
    values = listed if isinstance(listed, list) else []
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists" | "DoesNotExist" as operator:
            return (value is None) is (operator == "DoesNotExist")
        case "Gt" | "Lt" as operator:
            return _is_beyond(value, values, 1 if operator == "Gt" else -1)
    return False


def _is_beyond(value: object, limits: Sequence[object], sign: int) -> bool:
    """Whether a number is above the only limit (sign 1), or below it (-1)."""
    try:
        return sign * (int(str(value)) - int(str(limits[0]))) > 0
    except (ValueError, IndexError):
        return False


def _is_tolerated(spec: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    key = taint.get("key")
    always = _TOLERATED | (_ON_THE_HOST if spec.get("hostNetwork") is True else {})
    if taint.get("effect") == always.get(str(key)):
        return True
    for one in _objects(spec, "tolerations"):
        if one.get("effect") not in {None, "", taint.get("effect")}:
            continue
        if one.get("key") not in {None, "", key}:
            continue
        same = (one.get("value") or "") == (taint.get("value") or "")
        if one.get("operator") == "Exists" or (same and one.get("operator") in {None, "", "Equal"}):
            return True
    return False


def _objects(parent: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; none if it is no list."""
    listed = parent.get(key)
    return (one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, Mapping))
