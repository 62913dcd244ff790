"""The CustomResourceDefinitions, generated from the models.

The pydantic models are the source of the API. What Kubernetes cannot express is an error that names
the path: unions other than "or null", recursion, `extra="forbid"`.
Source: Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions", structural schemas.
"""

from typing import Any, Final

from numapin_api import names
from numapin_api.cpupolicy import CpuPolicy
from numapin_api.meta.wire import WireModel
from numapin_api.nodeassignment import NodeAssignment

_KEPT: Final = frozenset(
    {
        "description", "type", "format", "enum", "pattern", "minimum", "maximum", "minLength",
        "maxLength", "minItems", "maxItems", "maxProperties", "required",
    }
)  # fmt: skip
_DROPPED: Final = frozenset({"title", "default", "const"})
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"


class SchemaError(TypeError):
    """A model uses something that a structural schema cannot express."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


def structural(model: type[WireModel], *, path: str = "") -> dict[str, Any]:
    """The structural schema of a model, references inlined.

    Raises:
        SchemaError: the model uses something that Kubernetes cannot express.
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _node(raw, raw.get("$defs", {}), path or model.__name__, ())


def _node(
    raw: dict[str, Any], defs: dict[str, Any], path: str, ancestors: tuple[str, ...]
) -> dict[str, Any]:
    raw, ancestors = _resolved(raw, defs, path, ancestors)
    schema = {key: value for key, value in raw.items() if key in _KEPT or key.startswith("x-")}
    _check_keywords(raw, path)
    if "anyOf" in raw:
        return _optional(raw, schema, defs, (path, ancestors))
    if properties := raw.get("properties"):
        schema["properties"] = {
            name: _property(name, one, defs, (f"{path}.{name}", ancestors))
            for name, one in properties.items()
        }
    if isinstance(values := raw.get("additionalProperties"), dict):
        schema["additionalProperties"] = _node(values, defs, f"{path}[*]", ancestors)
    if "items" in raw:
        schema["items"] = _node(raw["items"], defs, f"{path}[]", ancestors)
    if schema.get(_INT_OR_STRING):
        del schema["type"]
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    elif "type" not in schema:
        raise SchemaError(path, "has no type")
    return schema


def _resolved(
    raw: dict[str, Any], defs: dict[str, Any], path: str, ancestors: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    reference = raw.get("$ref")
    if reference is None:
        return raw, ancestors
    name = reference.rsplit("/", 1)[-1]
    if name in ancestors:
        raise SchemaError(path, f"refers back to {name}; a structural schema cannot recurse")
    rest = {key: value for key, value in raw.items() if key != "$ref"}
    return {**defs[name], **rest}, (*ancestors, name)


def _check_keywords(raw: dict[str, Any], path: str) -> None:
    if raw.get("additionalProperties") is False:
        raise SchemaError(path, 'extra="forbid" has no counterpart; the API server prunes')
    known = _KEPT | _DROPPED | {"properties", "additionalProperties", "items", "anyOf", "$defs"}
    strange = sorted(key for key in raw if key not in known and not key.startswith("x-"))
    if strange:
        raise SchemaError(path, f"{', '.join(strange)} has no counterpart")


def _optional(
    raw: dict[str, Any],
    schema: dict[str, Any],
    defs: dict[str, Any],
    where: tuple[str, tuple[str, ...]],
) -> dict[str, Any]:
    path, ancestors = where
    choices = [one for one in raw["anyOf"] if one.get("type") != "null"]
    if len(choices) != 1 or len(choices) == len(raw["anyOf"]):
        raise SchemaError(path, "a union other than `or null` has no counterpart")
    return _node(choices[0], defs, path, ancestors) | schema | {"nullable": True}


def _property(
    name: str, raw: dict[str, Any], defs: dict[str, Any], where: tuple[str, tuple[str, ...]]
) -> dict[str, Any]:
    path, ancestors = where
    if name == "metadata":
        return {"type": "object"}
    schema = _node(raw, defs, path, ancestors)
    if "description" not in schema:
        raise SchemaError(path, "has no description")
    default = raw.get("default")
    if default not in (None, "", [], {}):
        schema["default"] = default
    return schema


def _column(name: str, path: str, text: str, *, kind: str = "string", wide: bool = False) -> Any:
    column = {"name": name, "type": kind, "jsonPath": path, "description": text}
    return column | {"priority": 1} if wide else column


def _condition(kind: str, part: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{part}'


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "Time since creation.", kind="date")

_OUTDATED: Final = "The number of containers that the newest policy would not place as they are."

_POLICY_COLUMNS: Final = [
    _column("Mode", ".spec.mode", "The mode: Static, None or Dynamic."),
    _column(
        "Priority", ".spec.priority", "The policy with the highest number applies.", kind="integer"
    ),
    _column("Nodes", ".status.nodesSelected", "The number of nodes selected.", kind="integer"),
    _column(
        "In Force",
        ".status.nodesInForce",
        "The number of nodes on which the policy is in force.",
        kind="integer",
    ),
    _column(
        "Stalled",
        ".status.nodesStalled",
        "The number of nodes on which the policy cannot be put in force.",
        kind="integer",
    ),
    _column("Refused", ".status.refused", "The number of refused pods.", kind="integer"),
    _column("Outdated", ".status.outdated", _OUTDATED, kind="integer"),
    _column(
        "Ready",
        _condition("Ready", "status"),
        "Whether the policy is in force on every node that it governs.",
    ),
    _AGE,
    _column(
        "Not Served",
        ".status.nodesNotServed",
        "The number of nodes that are not waited for.",
        kind="integer",
        wide=True,
    ),
    _column("Topology", ".spec.topology.policy", "How resources are aligned.", wide=True),
    _column("Memory", ".spec.memory.policy", "How memory is bound.", wide=True),
    _column(
        "Status", _condition("Ready", "message"), "The message of the condition Ready.", wide=True
    ),
]

_ASSIGNMENT_COLUMNS: Final = [
    _column("Policy", ".spec.policy.name", "The policy in force."),
    _column("Mode", ".spec.mode", "The mode: Static, None or Dynamic."),
    _column(
        "Exclusive", ".status.pools.exclusive", "CPUs that are exclusive to one container each."
    ),
    _column("Shared", ".status.pools.shared", "CPUs of all other containers."),
    _column("Reserved", ".status.pools.reserved", "CPUs that are never assigned exclusively."),
    _column("Refused", ".status.refused", "The number of refused pods.", kind="integer"),
    _column("Outdated", ".status.outdated", _OUTDATED, kind="integer"),
    _column(
        "Drift",
        ".status.driftCount",
        "Cpuset changes by others that were reverted.",
        kind="integer",
    ),
    _column("Ready", _condition("Ready", "status"), "Whether the kernel has what the spec says."),
    _AGE,
    _column("Cgroup", ".status.cgroup.version", "The cgroup version.", kind="integer", wide=True),
    _column("Driver", ".status.cgroup.driver", "The cgroup driver of the kubelet.", wide=True),
    _column("Runtime", ".status.runtime.name", "The container runtime.", wide=True),
    _column(
        "Runtime Version",
        ".status.runtime.version",
        "The version of the container runtime.",
        wide=True,
    ),
    _column(
        "Status", _condition("Ready", "message"), "The message of the condition Ready.", wide=True
    ),
]


def _crd(
    model: type[WireModel], kind: tuple[str, str, str, str], columns: list[Any]
) -> dict[str, Any]:
    _, plural, _, _ = kind
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{names.GROUP}",
            "labels": {"app.kubernetes.io/name": "numapin"},
        },
        "spec": {
            "group": names.GROUP,
            "names": _names(kind),
            "scope": "Cluster",
            "versions": [_version(model, columns)],
        },
    }


def _version(model: type[WireModel], columns: list[Any]) -> dict[str, Any]:
    schema = structural(model)
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
    } | schema["properties"]
    return {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }


def _names(kind: tuple[str, str, str, str]) -> dict[str, Any]:
    name, plural, singular, short = kind
    return {
        "kind": name,
        "listKind": f"{name}List",
        "plural": plural,
        "singular": singular,
        "shortNames": [short],
        "categories": ["numapin"],
    }


def definitions() -> dict[str, dict[str, Any]]:
    """The CustomResourceDefinitions by the file name that they are committed under."""
    policy = (
        names.CPU_POLICY_KIND,
        names.CPU_POLICY_PLURAL,
        names.CPU_POLICY_SINGULAR,
        names.CPU_POLICY_SHORT,
    )
    assignment = (
        names.NODE_ASSIGNMENT_KIND,
        names.NODE_ASSIGNMENT_PLURAL,
        names.NODE_ASSIGNMENT_SINGULAR,
        names.NODE_ASSIGNMENT_SHORT,
    )
    return {
        f"{names.GROUP}_{names.CPU_POLICY_PLURAL}.yaml": _crd(CpuPolicy, policy, _POLICY_COLUMNS),
        f"{names.GROUP}_{names.NODE_ASSIGNMENT_PLURAL}.yaml": _crd(
            NodeAssignment, assignment, _ASSIGNMENT_COLUMNS
        ),
    }
