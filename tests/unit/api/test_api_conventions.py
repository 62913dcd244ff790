"""The schemas keep to rules that reviewers of APIs apply; what does not yet is counted.

Source: kube-api-linter, the rules that Kueue enables (its `.golangci-kal.yml`) and that a schema
can break. A count may only fall: change it here with the field. Decision 0007 says what v1beta1
changes.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from numapin_api.schema.definitions import definitions

Schema = dict[str, Any]

KNOWN = {
    ("CpuPolicy", "commentstart"): 81,
    ("CpuPolicy", "conditions"): 1,
    ("CpuPolicy", "nonullable"): 7,
    ("NodeAssignment", "commentstart"): 140,
    ("NodeAssignment", "conditions"): 1,
    ("NodeAssignment", "nonullable"): 38,
    ("NodeReport", "commentstart"): 47,
    ("NodeReport", "nonullable"): 6,
    ("NodeTopology", "commentstart"): 21,
    ("NodeTopology", "nonullable"): 3,
}


def fields(schema: Schema) -> Iterator[tuple[str, Schema, Schema]]:
    """Each field of an object and of what is in it: its name, its schema, and its parent's."""
    for name, one in schema.get("properties", {}).items():
        yield name, one, schema
        yield from fields(one)
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            yield from fields(schema[inside])


def broken_rules(name: str, schema: Schema, parent: Schema) -> Iterator[str]:
    """The rules that a field breaks."""
    if not re.match(rf"`?{name}\b", schema.get("description", name)):
        yield "commentstart"  # the description begins with the name of the field
    if schema.get("nullable"):
        yield "nonullable"
    if "default" in schema and name in parent.get("required", ()):
        yield "conflictingmarkers"
    if "timestamp" in name.lower():
        yield "notimestamp"
    if name.lower().endswith("phase"):
        yield "nophase"
    if name == "conditions" and next(iter(parent["properties"])) != name:
        yield "conditions"


def test_no_rule_is_broken_more_often_than_known() -> None:
    found: Counter[tuple[str, str]] = Counter()
    for definition in definitions().values():
        kind = definition["spec"]["names"]["kind"]
        properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for part in ("spec", "status"):
            for field in fields(properties.get(part, {})):
                found.update((kind, rule) for rule in broken_rules(*field))
    assert found == KNOWN


def test_conditions_are_a_map_by_type() -> None:
    for definition in definitions().values():
        properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        conditions = properties["status"]["properties"].get("conditions")
        if conditions is None:
            assert definition["spec"]["names"]["kind"] == "NodeTopology"
            continue
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]
