"""The base of all wire models: frozen, camelCase outside, CEL rules beside the fields."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

VALIDATIONS: Final = "x-kubernetes-validations"
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


def rule(expression: str, message: str, field: str | None = None) -> dict[str, str]:
    """One CEL rule: an expression that is true for valid values, and the message for others."""
    made = {"rule": expression, "message": message}
    return made | {"fieldPath": field} if field else made


def rules(*each: dict[str, str]) -> dict[str, Any]:
    """The schema extension with CEL rules, for `json_schema_extra`."""
    return {VALIDATIONS: list(each)}


def readable_cpu_list(schema: dict[str, Any]) -> None:
    """Replace the pattern of a kernel list by rules whose messages say what is wrong.

    The API server limits the estimated cost of rules, so only lists that people write have them,
    with a shorter `maxLength`. The others keep the pattern and are checked when they are parsed.
    """
    shape = f"self.matches('{schema.pop('pattern')}')"
    ranges = "self.split(',').filter(r, r.contains('-'))"
    ascending = f"{ranges}.all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))"
    how = "write it like 0-3,8"
    schema["maxLength"] = 1024
    schema |= rules(
        rule(shape, f"this is not a list of CPUs: {how}"),
        rule(f"!{shape} || {ascending}", f"a range runs backwards: {how}"),
    )


LABEL_KEY: Final = (
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"


def label_map_rules() -> dict[str, Any]:
    """Rules against keys and values that no label can have, which would never match.

    Source: Kubernetes, "Labels and Selectors", syntax and character set.
    """
    return rules(
        rule(
            f"self.all(key, key.matches('{LABEL_KEY}'))",
            "each key is a label key such as example.com/pool",
        ),
        rule(
            f"self.all(key, self[key].matches('{LABEL_VALUE}'))",
            "each value is a label value: letters, digits, '-', '_' and '.', at most 63",
        ),
    )


def atomic_list() -> dict[str, Any]:
    """A list that is replaced as a whole; server-side apply tracks it as one field."""
    return {LIST_TYPE: "atomic"}


def keyed_list(*keys: str) -> dict[str, Any]:
    """A list whose entries these fields identify; server-side apply merges them one by one."""
    return {LIST_TYPE: "map", LIST_MAP_KEYS: list(keys)}


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
