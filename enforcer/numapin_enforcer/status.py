"""Pure: what the node's status says, and the smallest patch that makes it say so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from numapin_api.conditions import Condition, ConditionType, Reason, Verdict, merge
from numapin_api.nodeassignment import NodeAssignmentStatus


@dataclass(frozen=True, slots=True)
class Report:
    """A status but for its conditions, whose times depend on what was said before."""

    content: NodeAssignmentStatus
    verdicts: tuple[Verdict, ...]

    def status(self, before: Iterable[Condition], now: str) -> NodeAssignmentStatus:
        """The whole status; `now` (RFC 3339) stands where a condition changes."""
        generation = self.content.observed_generation
        conditions = merge(tuple(before), self.verdicts, generation, now)
        return self.content.model_copy(update={"conditions": conditions})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps the node from doing as it should, as a condition tells it."""

    reason: str
    message: str


def judge(stalled: Obstacle | None, working: Obstacle | None, fine: str) -> tuple[Verdict, ...]:
    """The three conditions from what is wrong.

    Args:
        stalled: what somebody must mend before anything goes on.
        working: what is not done yet, and will be without help.
        fine: what to say of a node on which all is as it should be.
    """
    lacking = stalled or working
    ready = (
        Verdict(ConditionType.READY, False, lacking.reason, lacking.message)
        if lacking
        else Verdict(ConditionType.READY, True, Reason.ENFORCED, fine)
    )
    return (
        ready,
        _verdict(ConditionType.RECONCILING, working, Reason.SETTLED),
        _verdict(ConditionType.STALLED, stalled, Reason.NOT_STALLED),
    )


def _verdict(kind: ConditionType, obstacle: Obstacle | None, otherwise: Reason) -> Verdict:
    if obstacle is None:
        return Verdict(kind, False, otherwise)
    return Verdict(kind, True, obstacle.reason, obstacle.message)


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest patch that turns `before` into `after`. Source: RFC 7386."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif key not in before or old != value:
            patch[key] = value
    return patch
