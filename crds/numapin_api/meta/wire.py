"""The base of all wire models: frozen, camelCase outside, how lists merge."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

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
