"""Whether a value breaks a structural schema at all, for lists of thousands of objects.

The same rules as `numapin_api.schema.check`, as nested functions that are made once: a tenth of
the time, and no word about what is wrong.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from numapin_api.cpuset import LIST_PATTERN, CpuSet, ListFormatError
from numapin_api.schema.check import pattern

Check = Callable[[Any], bool]
"""Whether a value has no faults."""

_ENDLESS: Final = 1 << 64
"""More than any length in an object of the API."""


def quick_check(schema: Mapping[str, Any]) -> Check:
    """The check of a schema, which `find_faults` takes too."""
    check = _MAKERS[schema["type"]](schema)
    if not schema.get("nullable"):
        return check
    return lambda value: value is None or check(value)


def _object(schema: Mapping[str, Any]) -> Check:
    if "additionalProperties" in schema:
        return _map(schema)
    properties = {name: quick_check(one) for name, one in schema["properties"].items()}
    required, known = frozenset(schema.get("required", ())), properties.get

    def check(value: Any) -> bool:
        if not isinstance(value, dict) or not value.keys() >= required:
            return False
        for name, one in value.items():
            of_field = known(name)
            if of_field is not None and not of_field(one):
                return False
        return True

    return check


def _map(schema: Mapping[str, Any]) -> Check:
    of_value, most = quick_check(schema["additionalProperties"]), schema.get("maxProperties")

    def check(value: Any) -> bool:
        if not isinstance(value, dict) or (most is not None and len(value) > most):
            return False
        return all(map(of_value, value.values()))

    return check


def _list(schema: Mapping[str, Any]) -> Check:
    of_entry = quick_check(schema["items"])
    least, most = schema.get("minItems", 0), schema.get("maxItems", _ENDLESS)

    def check(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(of_entry, value))

    return check


def _text(schema: Mapping[str, Any]) -> Check:
    least, most = schema.get("minLength", 0), schema.get("maxLength", _ENDLESS)
    if "enum" in schema:
        known = frozenset(schema["enum"])
        return lambda value: isinstance(value, str) and value in known and len(value) <= most
    if schema.get("pattern") == LIST_PATTERN:
        return lambda value: (
            isinstance(value, str) and least <= len(value) <= most and _is_list(value)
        )
    if "pattern" in schema:
        search = pattern(schema["pattern"]).search
        return lambda value: (
            isinstance(value, str)
            and least <= len(value) <= most
            and search(value) is not None
            and _is_unicode(value)
        )
    return lambda value: (
        isinstance(value, str) and least <= len(value) <= most and _is_unicode(value)
    )


def _is_list(text: str) -> bool:
    try:
        CpuSet.parse(text)
    except ListFormatError:
        return False
    return True


def _is_unicode(text: str) -> bool:
    """False for a text with a surrogate, which no UTF-8 has."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _whole_number(schema: Mapping[str, Any]) -> Check:
    least, most = schema.get("minimum"), schema.get("maximum")
    return lambda value: (
        isinstance(value, int)
        and not isinstance(value, bool)
        and (least is None or value >= least)
        and (most is None or value <= most)
    )


def _boolean(schema: Mapping[str, Any]) -> Check:  # noqa: ARG001
    return lambda value: isinstance(value, bool)


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Check]]] = {
    "object": _object,
    "array": _list,
    "string": _text,
    "integer": _whole_number,
    "boolean": _boolean,
}
