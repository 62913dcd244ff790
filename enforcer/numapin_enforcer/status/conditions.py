"""What the status says of a pass: its conditions, and the smallest patch that writes them.

Does no I/O.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from numapin_api.conditions import Condition, ConditionType, Obstacle, Reason, Verdict, merge
from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_api.quantity import plural
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError
from numapin_enforcer.cgroups.write import Write
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
        known = [Condition.model_validate(one) for one in before.get("conditions") or ()]
        conditions = merge(known, self.verdicts, generation, now)
        made = self.content.model_copy(update={"conditions": conditions}).to_wire()
        if self.failed:
            made = {**before, **{key: made[key] for key in _JUDGED if key in made}}
        elif self.blind:
            made = {key: value for key, value in made.items() if key not in KERNEL_FIELDS}
            made |= {key: before[key] for key in KERNEL_FIELDS if key in before}
        return made


def judge(stalled: Obstacle | None, working: Obstacle | None, fine: str) -> tuple[Verdict, ...]:
    """The three conditions from what is wrong.

    Args:
        stalled: what a person must repair.
        working: what is not finished yet, and needs no help.
        fine: the message for a healthy node.
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


PASSES_TO_STALL = 5
"""After so many failed passes in a row the node is reported stalled."""

SHOWN = 3
"""How many failures a condition names."""


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
    """

    facts: NodeAssignmentStatus
    spec: NodeAssignmentSpec | None
    summary: Summary | None
    stalled: Sequence[Obstacle] = ()
    working: Sequence[Obstacle] = ()
    note: str = ""


def build_report(scene: Scene) -> Report:
    """The status of this moment."""
    summary = scene.summary or Summary()
    content = scene.facts.model_copy(
        update={
            "pools": summary.pools,
            "containers": summary.containers,
            "running": summary.running,
        }
    )
    stalled, working = _first(scene.stalled), _first((*scene.working, *_unsaved(summary)))
    fine = "; ".join(filter(None, (_fine(scene.spec, summary), scene.note)))
    verdicts = judge(stalled, working, fine)
    return Report(content, verdicts, blind=scene.summary is None)


def cgroup_obstacles(
    failures: Sequence[Failure], failed_passes: int
) -> tuple[list[Obstacle], list[Obstacle]]:
    """Refused writes as obstacles: those that a person must repair, and those that are retried."""
    if not failures:
        return [], []
    first = failures[0].error
    shown = "; ".join(str(failure.error) for failure in failures[:SHOWN])
    if len(failures) > SHOWN:
        shown += f"; and {len(failures) - SHOWN} more"
    obstacle = Obstacle(first.reason, shown)
    is_stalled = isinstance(first, CgroupReadOnlyError) or failed_passes >= PASSES_TO_STALL
    return ([obstacle], []) if is_stalled else ([], [obstacle])


def moving(writes: Iterable[Write]) -> list[Obstacle]:
    """Memory that is being moved."""
    paths = {write.path for write in writes}
    if not paths:
        return []
    return [Obstacle(Reason.APPLYING, f"memory of {plural(len(paths), 'cgroup')} is being moved")]


def stale_in_runtime(cgroups: Collection[str]) -> list[Obstacle]:
    """Containers that the runtime may still give CPUs that they must not have."""
    if not cgroups:
        return []
    count = plural(len(cgroups), "container")
    return [Obstacle(Reason.APPLYING, f"the runtime is being updated with the CPUs of {count}")]


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
    return f"{plural(count, 'container')} with exclusive CPUs"


def _first(obstacles: Sequence[Obstacle]) -> Obstacle | None:
    return obstacles[0] if obstacles else None
