"""Builds the status from the node's facts, what the kernel has, and what is wrong.

Does no I/O.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from numapin_api.conditions.merging import merge_conditions
from numapin_api.conditions.reasons import ConditionType, Obstacle, Reason, Verdict
from numapin_api.quantity import plural
from numapin_api.schema.plain import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.text import first_texts
from numapin_enforcer.status.conditions import SHOWN, foreign_note, judge
from numapin_enforcer.status.summary import Summary

KERNEL_FIELDS: Final = ("containers", "pools", "running")
"""The fields that are read from the cgroups."""

_JUDGED: Final = ("observedGeneration", "conditions")


@dataclass(frozen=True, slots=True)
class Report:
    """A status whose conditions have no times yet: those depend on the status before.

    Attributes:
        content: everything but the conditions.
        verdicts: the conditions.
        blind: the cgroups were unreadable; the previously reported values stay.
        failed: there was no result at all; everything stays but generation and conditions.
    """

    content: NodeAssignmentStatus
    verdicts: tuple[Verdict, ...]
    blind: bool = False
    failed: bool = False

    def wire(self, before: Mapping[str, Any], now: str) -> dict[str, Any]:
        """The whole status as JSON.

        Args:
            before: the status that the API server has.
            now: the time, RFC 3339, used where a condition changes.
        """
        generation = self.content.observed_generation
        known = before.get("conditions") or ()
        conditions = merge_conditions(known, self.verdicts, generation, now)
        made = self.content.to_wire() | {"conditions": conditions}
        if self.failed:
            made = {**before, **{key: made[key] for key in _JUDGED if key in made}}
        elif self.blind:
            made = {key: value for key, value in made.items() if key not in KERNEL_FIELDS}
            made |= {key: before[key] for key in KERNEL_FIELDS if key in before}
        return made


@dataclass(frozen=True, slots=True)
class Scene:
    """What a report is made of.

    Attributes:
        facts: what is known without a pass: generation, topology, cgroups, runtime, drift.
        spec: what is in force; None while nothing is.
        summary: what the kernel has; None if it could not be read.
        stalled: what a person must repair, the worst first.
        working: what is under way.
        note: an extra message for a healthy node.
        foreign: the exclusive containers on whose CPUs other tasks run.
    """

    facts: NodeAssignmentStatus
    spec: NodeAssignmentSpec | None
    summary: Summary | None
    stalled: Sequence[Obstacle] = ()
    working: Sequence[Obstacle] = ()
    note: str = ""
    foreign: Sequence[str] = ()


def build_report(scene: Scene) -> Report:
    """The status of this moment."""
    summary = scene.summary or Summary()
    content = replace(
        scene.facts,
        pools=summary.pools,
        containers=summary.containers,
        running=summary.running,
        refused=_refused(scene.spec),
        outdated=len(_outdated(scene.spec)),
    )
    stalled, working = _first(scene.stalled), _first((*scene.working, *_unsaved(summary)))
    confined = summary.confined.note if summary.confined else ""
    notes = (_fine(scene.spec, summary), foreign_note(scene.foreign), confined, scene.note)
    reason = Reason.INHERITED_AFFINITY if confined else Reason.ENFORCED
    reason = Reason.FOREIGN_TASKS if scene.foreign else reason
    verdicts = judge(stalled, working, "; ".join(filter(None, notes)), reason)
    if working is None and (left := _outdated(scene.spec)):
        verdicts = (verdicts[0], _waiting_for(left), verdicts[2])
    return Report(content, verdicts, blind=scene.summary is None)


def _refused(spec: NodeAssignmentSpec | None) -> int:
    """How many pods are refused, with those that the spec has no room for."""
    return len(spec.refused) + (spec.refused_omitted or 0) if spec else 0


def _outdated(spec: NodeAssignmentSpec | None) -> list[str]:
    """The containers that the newest policy would not place as they are."""
    if spec is None:
        return []
    return [f"{one.namespace}/{one.pod}/{one.container}" for one in spec.containers if one.outdated]


def _waiting_for(outdated: Sequence[str]) -> Verdict:
    """The kernel has what the spec says, and the spec not all that the policy says."""
    count, named = plural(len(outdated), "container"), first_texts(outdated, SHOWN)
    message = f"the policy would place {count} otherwise, until they end: {named}"
    return Verdict(ConditionType.RECONCILING, True, Reason.WAITING_FOR_CONTAINERS, message)


def _unsaved(summary: Summary) -> list[Obstacle]:
    """Containers that are reported as exclusive once the assignment is on disk."""
    if not summary.unsaved:
        return []
    new = plural(summary.unsaved, "new exclusive container")
    return [Obstacle(Reason.APPLYING, f"the assignment is being saved on the node, with {new}")]


def _fine(spec: NodeAssignmentSpec | None, summary: Summary) -> str:
    if spec is None:
        return "there is nothing to enforce"
    if spec.mode == "None":
        return "every cgroup has what its parent has"
    count = sum(one.exclusive for one in summary.containers)
    given = f"{plural(count, 'container')} with exclusive CPUs"
    if spec.release_at is None:
        return given
    return f"{given}; no policy wants them any more: given back at {spec.release_at}"


def _first(obstacles: Sequence[Obstacle]) -> Obstacle | None:
    return obstacles[0] if obstacles else None
