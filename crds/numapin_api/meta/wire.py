"""The base of all wire models: frozen, camelCase outside, how lists merge."""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from numapin_api.duration import (
    DURATION_PATTERN,
    MAX_DURATION,
    MAX_SECONDS,
    TIME_PATTERN,
    duration_nanoseconds,
    is_duration,
)
from numapin_api.meta.cel_rules import rule, rules

LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"


class WireModel(BaseModel):
    """A part of an object as the API server stores it.

    Unknown fields are dropped, as the API server does. Pass `extra="forbid"` when validating files
    that people wrote.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="ignore",
    )

    def to_wire(self) -> dict[str, Any]:
        """The model as values for JSON, without the unset (None) fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def atomic_list() -> dict[str, Any]:
    """A list that is replaced as a whole; server-side apply tracks it as one field."""
    return {LIST_TYPE: "atomic"}


def keyed_list(*keys: str) -> dict[str, Any]:
    """A list whose entries these fields identify; server-side apply merges them one by one."""
    return {LIST_TYPE: "map", LIST_MAP_KEYS: list(keys)}


def without_default(schema: dict[str, Any]) -> None:
    """The API server does not fill in the field: whether it is there says who has written."""
    schema.pop("default", None)


def _given(value: object) -> object:
    if value is None:
        raise ValueError("null is no value of this field: leave it out")
    return value


NOT_NULL: Final = AfterValidator(_given)
"""For an optional field that has `never_null`."""


def never_null(schema: dict[str, Any]) -> None:
    """An optional field that no manifest of 0.1 has may not be null, for `json_schema_extra`."""
    schema["nullable"] = False


def _quantity_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


QUANTITY_PATTERN: Final = (
    r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[mkMGTPE]|[eE][-+]?[0-9]+)?$"
)

Quantity = Annotated[
    str,
    BeforeValidator(_quantity_text),
    Field(
        pattern=QUANTITY_PATTERN,
        max_length=64,
        # pydantic leaves a pattern behind a validator out of the schema
        json_schema_extra={
            "x-kubernetes-int-or-string": True,
            "pattern": QUANTITY_PATTERN,
            "minimum": 0,
        },
    ),
]
"""A Kubernetes quantity, as text or a whole number. Source: apimachinery, `resource.Quantity`."""


def _checked_duration(text: str) -> str:
    if not is_duration(text):
        raise ValueError(NO_DURATION)
    if duration_nanoseconds(text) > MAX_SECONDS * 10**9:
        raise ValueError(f"a duration should be at most {MAX_DURATION}")
    return text


NO_DURATION: Final = "this is not a duration: write it like 30s, 5m or 1h30m"

IS_DURATION: Final = f"self.matches('{DURATION_PATTERN}')"
"""In CEL: without it, what `duration(self)` cannot read is an error of the rule."""

Duration = Annotated[
    str,
    AfterValidator(_checked_duration),
    Field(
        max_length=32,
        json_schema_extra={
            "pattern": DURATION_PATTERN,
            **rules(
                rule(IS_DURATION, NO_DURATION),
                rule(
                    f"!{IS_DURATION} || duration(self) <= duration('{MAX_DURATION}')",
                    f"a duration is at most {MAX_DURATION}",
                ),
            ),
        },
    ),
]
"""A duration as text. Source: apimachinery, `metav1.Duration`, and Go, time.ParseDuration."""

Time = Annotated[
    str,
    Field(pattern=TIME_PATTERN, max_length=20, json_schema_extra={"format": "date-time"}),
]
"""A time in whole seconds, UTC. Source: apimachinery, `metav1.Time`."""
