"""Pure: one pass and what surrounds it become a status and its conditions."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from numapin_api.conditions import Obstacle, Reason
from numapin_api.nodeassignment import NodeAssignmentSpec, NodeAssignmentStatus
from numapin_enforcer.cgroups.apply import Failure
from numapin_enforcer.cgroups.tree import CgroupReadOnlyError, Write
from numapin_enforcer.status.conditions import Report, judge
from numapin_enforcer.status.summary import Summary

PASSES_TO_STALL = 5
"""So many failed passes in a row, and somebody should look."""

SHOWN = 3
"""Failures told in a condition."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a report is made of.

    Attributes:
        facts: what is known without a pass: generation, topology, cgroups, runtime, drift.
        spec: what is in force; None while nothing is.
        summary: what the kernel has; None where it could not be looked at.
        stalled: what somebody must mend, the worst first.
        working: what is under way.
        note: what else is to be known of a node that is as it should be.
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
    stalled, working = _first(scene.stalled), _first((*scene.working, *_unkept(summary)))
    fine = "; ".join(filter(None, (_fine(scene.spec, summary), scene.note)))
    verdicts = judge(stalled, working, fine)
    return Report(content, verdicts, blind=scene.summary is None)


def cgroup_obstacles(
    failures: Sequence[Failure], failed_passes: int
) -> tuple[list[Obstacle], list[Obstacle]]:
    """What refused writes mean: what somebody must mend, and what is only tried again."""
    if not failures:
        return [], []
    first = failures[0].error
    told = "; ".join(str(failure.error) for failure in failures[:SHOWN])
    if len(failures) > SHOWN:
        told += f"; and {len(failures) - SHOWN} more"
    obstacle = Obstacle(first.reason, told)
    hopeless = isinstance(first, CgroupReadOnlyError) or failed_passes >= PASSES_TO_STALL
    return ([obstacle], []) if hopeless else ([], [obstacle])


def moving(writes: Iterable[Write]) -> list[Obstacle]:
    """Memory that is being moved, which takes its time."""
    paths = {write.path for write in writes}
    if not paths:
        return []
    return [Obstacle(Reason.APPLYING, f"memory of {len(paths)} cgroups is being moved")]


def remembered(lingering: Collection[str]) -> list[Obstacle]:
    """Containers that the runtime may still give what they are not to have any more."""
    if not lingering:
        return []
    told = f"the runtime is being told that {len(lingering)} containers may use other CPUs now"
    return [Obstacle(Reason.APPLYING, told)]


def _unkept(summary: Summary) -> list[Obstacle]:
    """Owners that are told as such once the assignment is kept on the node."""
    if not summary.unkept:
        return []
    told = f"the assignment is being kept on the node, {summary.unkept} of its owners are new"
    return [Obstacle(Reason.APPLYING, told)]


def _fine(spec: NodeAssignmentSpec | None, summary: Summary) -> str:
    if spec is None:
        return "nothing is to be enforced"
    if spec.mode == "None":
        return "every cgroup has what its parent has"
    count = sum(one.exclusive for one in summary.containers)
    return "1 container owns CPUs" if count == 1 else f"{count} containers own CPUs"


def _first(obstacles: Sequence[Obstacle]) -> Obstacle | None:
    return obstacles[0] if obstacles else None
