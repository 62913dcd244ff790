"""The conditions of an object as Kubernetes lists them."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from pydantic import Field

from numapin_api.conditions import ConditionType, Verdict
from numapin_api.text import cut_text
from numapin_api.wire import WireModel

MESSAGE_LIMIT: Final = 32768
"""Longest message of a condition, in characters. Source: Kubernetes `metav1.Condition`."""


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
    """The conditions with `verdicts` applied, sorted by type; conditions of others stay.

    Args:
        before: the conditions that the object has.
        verdicts: the new states; each type at most once. Their messages may be any text: file names
            and answers of other programs are in them.
        generation: the `metadata.generation` that they were computed from.
        now: the time, RFC 3339, used where a status changes.
    """
    known = {condition.type: condition for condition in before}
    for verdict in verdicts:
        old = known.get(verdict.type)
        status: Literal["True", "False"] = "True" if verdict.holds else "False"
        since = old.last_transition_time if old and old.status == status else now
        known[verdict.type] = Condition(
            type=verdict.type.value,
            status=status,
            observed_generation=generation,
            last_transition_time=since,
            reason=str(verdict.reason),
            message=cut_text(verdict.message, MESSAGE_LIMIT),
        )
    return tuple(known[name] for name in sorted(known))


def find(conditions: Sequence[Condition], wanted: ConditionType) -> Condition | None:
    """The condition of a type, or None if there is none."""
    return next((one for one in conditions if one.type == wanted), None)
