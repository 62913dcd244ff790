"""JSON objects as a model's structural schema allows them, whatever fields it has."""

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from numapin_api.cpuset import LIST_PATTERN
from numapin_api.meta.wire import WireModel
from numapin_api.schema.definitions import structural

Values = st.SearchStrategy[Any]

MOST_ENTRIES = 3
LISTS = ("0", "1-3", "0,5-8191", "1,1-2")


def objects(
    model: type[WireModel], without: Iterable[str] = ()
) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of a model; optional fields are there or not, and null where that is allowed.

    Args:
        model: the model.
        without: optional fields that are left out, as large ones must be.
    """
    schema = structural(model)
    for name in without:
        del schema["properties"][name]
    return _values(schema)


def _values(schema: dict[str, Any]) -> Values:
    plain = _of_type(schema)
    return st.none() | plain if schema.get("nullable") else plain


def _of_type(schema: dict[str, Any]) -> Values:
    match schema["type"]:
        case "object":
            return _objects(schema)
        case "array":
            most = min(schema.get("maxItems", MOST_ENTRIES), MOST_ENTRIES)
            return st.lists(
                _values(schema["items"]), min_size=schema.get("minItems", 0), max_size=most
            )
        case "string":
            return _texts(schema)
        case "integer":
            if "enum" in schema:
                return st.sampled_from(schema["enum"])
            return st.integers(schema.get("minimum", -9), schema.get("maximum", 1 << 40))
        case "boolean":
            return st.booleans()
    raise AssertionError(schema)


def _objects(schema: dict[str, Any]) -> Values:
    if "additionalProperties" in schema:
        keys = st.sampled_from(("0", "1", "2Mi"))
        return st.dictionaries(keys, _values(schema["additionalProperties"]), max_size=MOST_ENTRIES)
    fields = {name: _values(one) for name, one in schema.get("properties", {}).items()}
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: one for name, one in fields.items() if name in required},
        optional={name: one for name, one in fields.items() if name not in required},
    )


def _texts(schema: dict[str, Any]) -> Values:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("pattern") == LIST_PATTERN:
        return st.sampled_from(LISTS if schema.get("minLength") else ("", *LISTS))
    if "pattern" in schema:
        within = st.from_regex(
            schema["pattern"].removesuffix("$") + r"\Z", alphabet=st.characters(codec="ascii")
        )
        return within.filter(lambda text: len(text) <= schema.get("maxLength", len(text)))
    return st.text("ab-", min_size=schema.get("minLength", 0), max_size=4)
