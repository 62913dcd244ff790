"""The schemas keep to rules that reviewers of APIs apply.

They are those of kube-api-linter that Kueue enables (its `.golangci-kal.yml`), as far as a schema
can break them. Not checked, with the reason:

- commentstart (a description begins with the name of the field) is for comments in Go, which are
  read beside Go's names. `kubectl explain` prints the name above the description.
- duplicatemarkers, jsontags, uniquemarkers: markers and tags of Go; a schema has each keyword once.

Durations are texts as of metav1.Duration, which Kueue allows (nodurations is off there): decision
0007 says why.

Known, and counted, is nonullable: without it the API server refuses to apply a manifest of 0.1 that
has a null field on the server side, if the object exists (`test_nothing_differs_after_an_apply`).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from numapin_api import names
from numapin_api.schema.definitions import definitions

Schema = dict[str, Any]

NEWEST = names.VERSION


NULLABLE = {"CpuPolicy": 10, "NodeAssignment": 38, "NodeReport": 6, "NodeTopology": 3}
"""How many fields break nonullable. A count may only fall."""


UNSEEN = {
    ("NodeAssignment", "spec.cache", "a default below is not seen"),
    ("NodeAssignment", "spec.system", "a default below is not seen"),
}
"""Unset says that nothing of it is asked for, and the operator must find what it has written."""


def fields(schema: Schema, path: str) -> Iterator[tuple[str, Schema, Schema]]:
    """Each field of an object and of what is in it: its path, its schema, and its parent's."""
    for name, one in schema.get("properties", {}).items():
        yield f"{path}.{name}", one, schema
        yield from fields(one, f"{path}.{name}")
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            yield from fields(schema[inside], path)


def broken_rules(path: str, schema: Schema, parent: Schema) -> Iterator[str]:
    """The rules that a field breaks."""
    name = path.rpartition(".")[2]
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
    if "[0-9]{2}T[0-9]{2}" in schema.get("pattern", "") and schema.get("format") != "date-time":
        yield "a time is no date-time"
    below = schema.get("properties", {}).values()
    if name not in parent.get("required", ()) and not schema.get("required"):
        has_defaults = any("default" in one for one in below)
        if has_defaults and "default" not in schema:
            yield "a default below is not seen"


def versions() -> Iterator[tuple[str, str, Schema]]:
    """Each kind and version, with the properties of its schema."""
    for definition in definitions().values():
        for one in definition["spec"]["versions"]:
            properties = one["schema"]["openAPIV3Schema"]["properties"]
            yield definition["spec"]["names"]["kind"], one["name"], properties


def test_no_rule_is_broken_but_the_known_one() -> None:
    found = Counter(
        (kind, version, field[0], rule)
        for kind, version, properties in versions()
        for part in ("spec", "status")
        for field in fields(properties.get(part, {}), part)
        for rule in broken_rules(*field)
    )
    nullable = Counter(
        kind for kind, version, _, rule in found if rule == "nonullable" and version == NEWEST
    )
    assert nullable == NULLABLE
    others = {(kind, field, rule) for kind, _, field, rule in found if rule != "nonullable"}
    assert others == UNSEEN


def test_conditions_are_a_map_by_type() -> None:
    for kind, _, properties in versions():
        conditions = properties["status"]["properties"].get("conditions")
        if conditions is None:
            assert kind == "NodeTopology"
            continue
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_both_versions_have_one_schema() -> None:
    """So that an object of one is one of the other: nothing is pruned when it is converted.

    A field that v1beta1 lacked would be taken out of `spec` by each write of the status as v1beta1.
    """
    schemas = {(kind, version): properties for kind, version, properties in versions()}
    for (kind, version), properties in schemas.items():
        if version == names.ALPHA:
            assert schemas[kind, names.VERSION] == properties
