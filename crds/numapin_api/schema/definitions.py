"""The CustomResourceDefinitions, generated from the models.

The pydantic models are the source of the API. What Kubernetes cannot express is an error that names
the path: unions other than "or null", recursion, `extra="forbid"`.
Source: Kubernetes, "Extend the Kubernetes API with CustomResourceDefinitions", structural schemas.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from numapin_api import names
from numapin_api.cpupolicy import CpuPolicy
from numapin_api.forms.model import AssignmentOfLines
from numapin_api.meta.superset import superset
from numapin_api.meta.wire import WireModel
from numapin_api.nodeassignment import NodeAssignment
from numapin_api.schema.printer_columns import (
    ASSIGNMENT_COLUMNS,
    LINES_COLUMNS,
    POLICY_COLUMNS,
    REPORT_COLUMNS,
    TOPOLOGY_COLUMNS,
)
from numapin_api.status.node_report import NodeReport, NodeTopology

_KEPT: Final = frozenset(
    {
        "description", "type", "format", "enum", "pattern", "minimum", "maximum", "minLength",
        "maxLength", "minItems", "maxItems", "maxProperties", "required",
    }
)  # fmt: skip
_DROPPED: Final = frozenset({"title", "default", "const", "nullable"})
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
        optional = {name for name, one in properties.items() if "anyOf" in one}
        _fill_in(schema, optional)
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
    nullable = {} if raw.get("nullable") is False else {"nullable": True}
    return _node(choices[0], defs, path, ancestors) | schema | nullable


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


def _fill_in(schema: dict[str, Any], optional: Collection[str]) -> None:
    """Have objects whose fields have defaults be there by default, so that these are seen.

    One of the `optional` means something if it is unset: who left it out must find it so.
    """
    for name, one in schema["properties"].items():
        is_needed = name in schema.get("required", ()) or name in optional
        fields = one.get("properties", {}).values()
        if not is_needed and not one.get("required") and any("default" in each for each in fields):
            one["default"] = {}


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of the API.

    Attributes:
        model: its objects.
        name: the name in objects, such as CpuPolicy.
        plural: the name in URLs.
        singular: the name on the command line.
        short: the short name on the command line.
        columns: what `kubectl get` prints.
        more: a model of fields that its objects may have besides; None if there are none.
        alpha_columns: what `kubectl get` prints of `names.ALPHA`, if that differs.
        had_alpha: whether a release had it as `names.ALPHA`. Then that version is served and stored
            as well: who goes back to the CRDs of that release finds every object. Source:
            Kubernetes, "Kubernetes Deprecation Policy", rule 4b.
    """

    model: type[WireModel]
    name: str
    plural: str
    singular: str
    short: str
    columns: Sequence[Any]
    had_alpha: bool = False
    more: type[WireModel] | None = None
    alpha_columns: Sequence[Any] = ()


_KINDS: Final = (
    _Kind(
        CpuPolicy,
        names.CPU_POLICY_KIND,
        names.CPU_POLICY_PLURAL,
        names.CPU_POLICY_SINGULAR,
        names.CPU_POLICY_SHORT,
        POLICY_COLUMNS,
        had_alpha=True,
    ),
    _Kind(
        NodeAssignment,
        names.NODE_ASSIGNMENT_KIND,
        names.NODE_ASSIGNMENT_PLURAL,
        names.NODE_ASSIGNMENT_SINGULAR,
        names.NODE_ASSIGNMENT_SHORT,
        LINES_COLUMNS,
        had_alpha=True,
        more=AssignmentOfLines,
        alpha_columns=ASSIGNMENT_COLUMNS,
    ),
    _Kind(
        NodeReport,
        names.NODE_REPORT_KIND,
        names.NODE_REPORT_PLURAL,
        names.NODE_REPORT_SINGULAR,
        names.NODE_REPORT_SHORT,
        REPORT_COLUMNS,
    ),
    _Kind(
        NodeTopology,
        names.NODE_TOPOLOGY_KIND,
        names.NODE_TOPOLOGY_PLURAL,
        names.NODE_TOPOLOGY_SINGULAR,
        names.NODE_TOPOLOGY_SHORT,
        TOPOLOGY_COLUMNS,
    ),
)


def definitions() -> dict[str, dict[str, Any]]:
    """The CustomResourceDefinitions by the file name that they are committed under."""
    return {f"{names.GROUP}_{one.plural}.yaml": _crd(one) for one in _KINDS}


def _crd(kind: _Kind) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{names.GROUP}",
            "labels": {"app.kubernetes.io/name": "numapin"},
        },
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": [kind.short],
                "categories": ["numapin"],
            },
            "scope": "Cluster",
            "conversion": {"strategy": "None"},
            "versions": list(_versions(kind)),
        },
    }


def _versions(kind: _Kind) -> Iterator[dict[str, Any]]:
    """The served versions: all with one schema, so that a conversion need not change an object."""
    yield _version(kind, names.VERSION, storage=not kind.had_alpha)
    if kind.had_alpha:
        columns = kind.alpha_columns or kind.columns
        yield _version(kind, names.ALPHA, storage=True) | {
            "additionalPrinterColumns": columns,
            "deprecated": True,
            "deprecationWarning": f"{names.GROUP}/{names.ALPHA} {kind.name} is deprecated; "
            f"use {names.API_VERSION}",
        }


def _version(kind: _Kind, name: str, *, storage: bool) -> dict[str, Any]:
    schema = structural(kind.model)
    if kind.more is not None:
        schema = superset(schema, structural(kind.more))
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
    } | schema["properties"]
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "additionalPrinterColumns": kind.columns,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
