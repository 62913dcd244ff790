"""The conditions of an object as Kubernetes lists them."""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

from pydantic import Field

from numapin_api.conditions.merging import MESSAGE_LIMIT, merge_conditions
from numapin_api.conditions.reasons import ConditionType, Verdict
from numapin_api.meta.wire import WireModel


class Condition(WireModel):
    """One aspect of an object's state. Source: Kubernetes `metav1.Condition`."""

    type: str = Field(
        description="The type of the condition: Ready, Reconciling or Stalled.",
        max_length=316,
        min_length=1,
    )
    status: Literal["True", "False", "Unknown"] = Field(
        description="The status of the condition: True, False or Unknown."
    )
    observed_generation: int = Field(
        default=0,
        ge=0,
        description="The metadata.generation that the condition was computed from.",
    )
    last_transition_time: str = Field(
        description="The last time that the condition's status changed.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str = Field(
        description="The reason for the status, as one CamelCase word.",
        max_length=1024,
        min_length=1,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = Field(
        default="",
        description="A human-readable explanation of the status.",
        max_length=MESSAGE_LIMIT,
    )


def merge(
    before: Sequence[Condition], verdicts: Iterable[Verdict], generation: int, now: str
) -> tuple[Condition, ...]:
    """As `merge_conditions`."""
    merged = merge_conditions((one.to_wire() for one in before), verdicts, generation, now)
    return tuple(map(Condition.model_validate, merged))


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


_C = TypeVar("_C", bound=_Typed)


def find(conditions: Iterable[_C], wanted: ConditionType) -> _C | None:
    """The condition of a type, or None if there is none."""
    return next((one for one in conditions if one.type == wanted), None)
