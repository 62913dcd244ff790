"""The kinds of each layout: today's definition, variants of it, and prototypes. Does no I/O."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from numapin_api.schema.definitions import definitions

Schema = dict[str, Any]

VERSION = "v1alpha1"
TEXT: Schema = {"type": "string", "maxLength": 1 << 20}
LINE: Schema = {"type": "string", "maxLength": 2048}
NUMBER: Schema = {"type": "integer", "minimum": 0}
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CONDITIONS: Schema = {
    "type": "array",
    "maxItems": 16,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": LINE,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": LINE,
            "message": {"type": "string", "maxLength": 32768},
            "observedGeneration": NUMBER,
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    },
}
"""Of metav1.Condition."""


def group(layout: str) -> str:
    """The API group of a layout; one for each, so that they stand beside each other."""
    return f"{layout}.layouts.numapin.io"


LINE_PATTERN = r"^[^ /]+/[^ ]+ [^ ]+( [a-z]+=[^ ]+)+$"


def lines(most: int = 2048, *, checked: bool = False) -> Schema:
    """A list of lines that is replaced as a whole; `checked` for their form."""
    items = LINE | ({"pattern": LINE_PATTERN} if checked else {})
    list_type = {"x-kubernetes-list-type": "atomic"}
    return {"type": "array", "maxItems": most, "items": items} | list_type


def record(**properties: Schema) -> Schema:
    """An object with these fields."""
    return {"type": "object", "properties": properties}


def header(entries: Mapping[str, Schema]) -> Schema:
    """The spec of a node: how its settings and its pools are, and where its entries are."""
    policy = record(name=LINE, generation=NUMBER, since=NUMBER, uid=LINE, hardware=LINE)
    settings = dict.fromkeys(("mode", "cpuQuota", "isolation"), LINE)
    return record(policy=policy, pools=record(reserved=LINE, shared=LINE), **settings, **entries)


def exceptions() -> Schema:
    """A status that lists only what differs from the spec of `observedGeneration`."""
    return record(
        conditions=CONDITIONS,
        observedGeneration=NUMBER,
        exclusiveCPUs=LINE,
        sharedCPUs=LINE,
        refused=NUMBER,
        notInForce=lines(),
        notRunning=lines(),
    )


COLUMNS = (
    ("Policy", ".spec.policy.name"),
    ("Mode", ".spec.mode"),
    ("Exclusive", ".status.exclusiveCPUs"),
    ("Shared", ".status.sharedCPUs"),
    ("Ready", '.status.conditions[?(@.type=="Ready")].status'),
    ("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
)


def kind(layout: str, name: str, schema: Schema, *, selectable: str = "") -> Schema:
    """The definition of a cluster-scoped prototype; `schema` has its fields."""
    plural = f"{name.lower()}s"
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [
            {"name": column, "jsonPath": path, "type": "string"} for column, path in COLUMNS
        ],
    }
    if schema["properties"].keys() >= {"spec", "status"}:
        version["subresources"] = {"status": {}}
    if selectable:
        version["selectableFields"] = [{"jsonPath": selectable}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group(layout)}"},
        "spec": {
            "group": group(layout),
            "names": {"kind": name, "plural": plural},
            "scope": "Cluster",
            "versions": [version],
        },
    }


def today(layout: str) -> Schema:
    """Today's definition of a NodeAssignment, in the group of a layout."""
    found = deepcopy(definitions()["numapin.io_nodeassignments.yaml"])
    found["metadata"] = {"name": f"nodeassignments.{group(layout)}"}
    found["spec"]["group"] = group(layout)
    found["spec"]["versions"] = [found["spec"]["versions"][0] | {"name": VERSION, "storage": True}]
    del found["spec"]["names"]["shortNames"], found["spec"]["names"]["categories"]
    return found


def without_rules(layout: str) -> Schema:
    """Today's definition without its CEL rules."""
    found: Schema = _stripped(today(layout), "x-kubernetes-validations")
    return found


def without_schema(layout: str) -> Schema:
    """Today's definition with a spec and a status that may hold anything."""
    found = today(layout)
    properties = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties |= {"spec": ANYTHING, "status": ANYTHING}
    return found


def _stripped(value: Any, keyword: str) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(one, keyword) for key, one in value.items() if key != keyword}
    return [_stripped(one, keyword) for one in value] if isinstance(value, list) else value
