"""What is wrong with a value by a structural schema, without the models.

The models take 9 MiB of memory; the enforcer, on every node, has the schema that is generated from
them. The rules in CEL are not checked: the API server does, and the enforcer has its own for them.
"""

import re
from collections.abc import Iterator, Mapping, Sized
from functools import lru_cache
from typing import Any, Final

from numapin_api.cpuset import LIST_PATTERN, CpuSet, ListFormatError

KEYWORDS: Final = frozenset(
    {
        "type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
        "maxItems", "maxProperties", "required", "nullable", "properties", "additionalProperties",
        "items",
    }
)  # fmt: skip
"""The keywords that are known here; another one in a schema is a defect."""

_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "object": (dict, "an object"),
    "array": (list, "a list"),
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
}

_BOUNDS: Final = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "entries"),
    ("minProperties", "maxProperties", "entries"),
)


def find_faults(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Every wrong field, as its path, the problem and the remedy.

    Args:
        value: what `json.loads` returned, of any shape and not deeper than that takes.
        schema: with no keywords but `KEYWORDS`.
        path: where the value stands, such as `spec`.
    """
    if value is None and schema.get("nullable"):
        return
    expected, name = _TYPES[schema["type"]]
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        yield _fault(path, f"should be {name}", value)
    elif isinstance(value, dict):
        yield from _object_faults(value, schema, path)
    elif isinstance(value, list):
        yield from _size_faults(value, schema, path)
        for index, one in enumerate(value):
            yield from find_faults(one, schema["items"], f"{path}[{index}]")
    elif isinstance(value, str):
        yield from _text_faults(value, schema, path)
    elif isinstance(value, int):
        yield from _number_faults(value, schema, path)


def find_unknown(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """The path of each field that a schema does not have, in a value without faults.

    Fields of list entries are named once for each entry, as `containers[].future`.
    """
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        for name, one in value.items():
            if name in known:
                yield from find_unknown(one, known[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(value, list):
        for one in value:
            yield from find_unknown(one, schema["items"], f"{path}[]")


def _object_faults(
    value: Mapping[str, object], schema: Mapping[str, Any], path: str
) -> Iterator[str]:
    """The faults of an object, or of a map: all its values are of one schema."""
    if "additionalProperties" in schema:
        yield from _size_faults(value, schema, path)
        for name, one in value.items():
            yield from find_faults(one, schema["additionalProperties"], f"{path}.{name:.60}")
        return
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is missing; add it"
    for name, one in schema["properties"].items():
        if name in value:
            yield from find_faults(value[name], one, f"{path}.{name}")


def _size_faults(value: Sized, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for least, most, what in _BOUNDS:
        if len(value) < schema.get(least, 0):
            yield _fault(path, f"should have at least {schema[least]} {what}", value)
        if most in schema and len(value) > schema[most]:
            yield _fault(path, f"should have at most {schema[most]} {what}", value)


def _text_faults(value: str, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _size_faults(value, schema, path)
    if "enum" in schema and value not in schema["enum"]:
        yield _fault(path, f"should be one of {', '.join(schema['enum'])}", value)
    if schema.get("pattern") == LIST_PATTERN:
        yield from _list_faults(value, path)
    elif "pattern" in schema and not pattern(schema["pattern"]).search(value):
        yield _fault(path, f"should match {schema['pattern']}", value)
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield _fault(path, "should be Unicode text", value)


def _list_faults(value: str, path: str) -> Iterator[str]:
    """A pattern cannot check that the ranges of a kernel list ascend."""
    try:
        CpuSet.parse(value)
    except ListFormatError as error:
        yield _fault(path, str(error), value)


def _number_faults(value: int, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if value < schema.get("minimum", value):
        yield _fault(path, f"should be at least {schema['minimum']}", value)
    if value > schema.get("maximum", value):
        yield _fault(path, f"should be at most {schema['maximum']}", value)


def _fault(path: str, problem: str, value: object) -> str:
    return f"{path}: {problem}, not {value!r:.60}"


@lru_cache(maxsize=16)
def pattern(text: str) -> re.Pattern[str]:
    """A pattern of a schema: unlike Python's, its `$` does not match before a newline."""
    return re.compile(text.removesuffix("$") + r"\Z" if text.endswith("$") else text, re.ASCII)
