"""Pure: what the node's status says, and the smallest patch that makes it say so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.conditions import Condition, ConditionType, Obstacle, Reason, Verdict, merge
from numapin_api.nodeassignment import NodeAssignmentStatus

KERNELS_WORD: Final = ("containers", "pools", "running")
"""The fields that only a look at the cgroups can fill."""


@dataclass(frozen=True, slots=True)
class Report:
    """A status but for its conditions, whose times depend on what was said before.

    `blind` says that the cgroups could not be looked at: what was said of them stays.
    """

    content: NodeAssignmentStatus
    verdicts: tuple[Verdict, ...]
    blind: bool = False

    def wire(self, before: Mapping[str, Any], now: str) -> dict[str, Any]:
        """The whole status as JSON.

        Args:
            before: the status that the API server has.
            now: the time, RFC 3339, used where a condition changes.
        """
        generation = self.content.observed_generation
        known = [Condition.model_validate(one) for one in before.get("conditions") or ()]
        conditions = merge(known, self.verdicts, generation, now)
        made = self.content.model_copy(update={"conditions": conditions}).to_wire()
        if self.blind:
            made = {key: value for key, value in made.items() if key not in KERNELS_WORD}
            made |= {key: before[key] for key in KERNELS_WORD if key in before}
        return made


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
