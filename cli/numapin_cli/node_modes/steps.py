"""What must be done next so that a node is released. Does no I/O."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType
from numapin_api.duration import epoch_seconds
from numapin_api.names import NODE_MODE_ANNOTATION
from numapin_operator.nodes.decide.returning import is_released
from numapin_operator.observe.assignments.view import AssignmentView

PATIENCE_SECONDS: Final = 15.0
"""How long the operator has for its next write, before the command makes it in its place."""


class Step(Enum):
    """What to do next."""

    WAIT = "wait"
    GIVE_UP = "give up all CPU sets"
    DELETE = "delete the assignment"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Waited:
    """How long nothing has changed on a node, and what time it is.

    Attributes:
        seconds: since the last change.
        unix: now, in seconds since 1970.
    """

    seconds: float
    unix: float


def next_step(seen: AssignmentView | None, waited: Waited) -> Step:
    """What to do about a node whose Node has the annotation.

    The operator releases it as one that no policy selects. What it does not do in time is done in
    its place, with the same writes: it may be gone.
    """
    if seen is None:
        return Step.DONE
    is_patient = waited.seconds < PATIENCE_SECONDS
    if seen.deleting:
        return Step.WAIT
    if gives_up(seen):
        return Step.WAIT if is_patient or not is_released(seen) else Step.DELETE
    due = due_at(seen)
    if is_patient or (due is not None and waited.unix < due + PATIENCE_SECONDS):
        return Step.WAIT
    return Step.GIVE_UP


def gives_up(seen: AssignmentView) -> bool:
    """Whether an assignment says that the node gets everything back."""
    return seen.problem is None and seen.spec.mode == "None" and seen.spec.pools is None


def due_at(seen: AssignmentView) -> int | None:
    """When the operator gives the CPUs back, in seconds since 1970; None if it has said nothing."""
    announced = seen.spec.release_at
    return None if announced is None or seen.problem is not None else epoch_seconds(announced)


def state_of(seen: AssignmentView) -> tuple[object, ...]:
    """What changes when a node comes nearer to its release, and only a few times."""
    return seen.uid, seen.generation, seen.deleting, seen.status.observed_generation


def why_stuck(seen: AssignmentView) -> str:
    """Why a node is not released, and what to do about it."""
    if seen.deleting:
        held = seen.metadata.get("finalizers") or ()
        named = ", ".join(map(str, held)) or "somebody"
        return f"its NodeAssignment is deleted, and kept by {named}"
    if not gives_up(seen):
        return (
            "its NodeAssignment is written again: an operator of an earlier release does not know"
            f" {NODE_MODE_ANNOTATION}; update it, or delete the policy of the node"
        )
    ready = find(seen.status.conditions, ConditionType.READY)
    if ready is None or ready.status == "Unknown" or not _is_answered(seen):
        return "its enforcer does not answer: it does not run, or cannot reach the API server"
    return f"its enforcer has not given everything back, {ready.reason}: {ready.message}"


def _is_answered(seen: AssignmentView) -> bool:
    return seen.status.observed_generation == seen.generation
