"""What every wire model shares: frozen, camelCase outside, CEL rules beside the fields."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

VALIDATIONS: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"


class WireModel(BaseModel):
    """A part of an object as it stands in the API server.

    Unknown fields are dropped, as the API server drops them; a reader of files that people wrote
    asks for `extra="forbid"` when it validates.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        extra="ignore",
    )

    def to_wire(self) -> dict[str, Any]:
        """This model as JSON-ready values; what is unset (None) is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def rule(expression: str, message: str, field: str | None = None) -> dict[str, str]:
    """One CEL rule: an expression that holds for good values, and what to tell who breaks it."""
    made = {"rule": expression, "message": message}
    return made | {"fieldPath": field} if field else made


def rules(*each: dict[str, str]) -> dict[str, Any]:
    """The schema extension that carries CEL rules; goes into `json_schema_extra`."""
    return {VALIDATIONS: list(each)}


def cpu_list_rules() -> dict[str, Any]:
    """What the pattern of a kernel list cannot say: no range runs backwards.

    The API server bounds a rule by its estimated cost, so only lists that people write carry it,
    with a shorter `maxLength`; all others are checked by whoever parses them.
    """
    ranges = "self.split(',').filter(r, r.contains('-'))"
    ascending = f"{ranges}.all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))"
    return rules(rule(ascending, "a range runs backwards; write it like 0-3,8"))


def atomic_list() -> dict[str, Any]:
    """One writer owns the whole list; server-side apply then keeps one entry for all of it."""
    return {LIST_TYPE: "atomic"}


def keyed_list(*keys: str) -> dict[str, Any]:
    """Entries are told apart by these fields; server-side apply merges them one by one."""
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
        json_schema_extra={"x-kubernetes-int-or-string": True},
    ),
]
"""A Kubernetes quantity, as text or a whole number. Source: apimachinery, `resource.Quantity`."""
