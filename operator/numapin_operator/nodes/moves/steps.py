"""The steps of a move: which may be taken now, and when the next one can be.

The NodeAssignment has all that is known of a move, so a restarted operator goes on with it.

1. The container gets its new CPUs besides the old ones (`placement`).
2. When the enforcer has reported them, the time is written at which the old ones leave.
3. At that time the old ones leave.
4. When the enforcer has reported that, they are free for others.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from numapin_api.conditions.model import find
from numapin_api.conditions.reasons import ConditionType
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import duration_seconds, epoch_seconds, time_text
from numapin_api.meta.matching import selects
from numapin_api.schema.plain_assignment import ContainerAssignment, NodeAssignmentSpec
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.placement import (
    MoveRules,
    PodView,
    Queued,
    Waiting,
    dropped,
    finished,
    is_dropped,
    noticed,
)

MINUTE: Final = 60
SHOWN_SECONDS: Final = 1.0
"""How long the kubelet may take to show a workload what it is told, which is no part of the notice.

It takes 0.33 to 0.67 s on an idle node; see docs/notice.md.
"""

MOST_NOTICE: Final = 62
"""The longest notice with that, rounded up to whole seconds as the time is."""

MOST_DELAY: Final = 60.0
"""How long after the time that was written the old CPUs leave although the workload could not be
told."""

Told = Mapping[str, float]
"""Since when each pod has been told what leaves it; see `Telling.told`."""


def advanced(
    spec: NodeAssignmentSpec,
    assignment: AssignmentView,
    policy: CpuPolicySpec,
    now: float,
    told: Told | None = None,
) -> NodeAssignmentSpec:
    """The spec with every move one step further that can be.

    Args:
        spec: the spec that the next plan goes on from.
        assignment: what is written, and what its enforcer reports.
        policy: the policy that governs the node.
        now: the time, in seconds since 1970.
        told: since when pods have been told; None if nothing waits for that.
    """
    if not any(one.moving for one in spec.containers):
        return spec
    at = time_text(now + _notice(policy, told))
    return replace(
        spec,
        containers=tuple(
            _advanced(one, at, now, _due(one, policy, told))
            if one.moving and _is_in_force(one, assignment)
            else one
            for one in spec.containers
        ),
    )


def _advanced(
    entry: ContainerAssignment, at: str, now: float, due: float | None
) -> ContainerAssignment:
    assert entry.moving is not None
    if is_dropped(entry):
        return finished(entry)
    written = epoch_seconds(entry.moving.at) if entry.moving.at else None
    if due is None or written is None or written > now + MOST_NOTICE:
        return noticed(entry, at)  # for the first time, or the clock was wrong then, or is now
    return dropped(entry) if due <= now else entry


def _due(entry: ContainerAssignment, policy: CpuPolicySpec, told: Told | None) -> float | None:
    """When the old CPUs leave: at the time that was written, and a whole notice after it was shown.

    None if no time is written yet.
    """
    if entry.moving is None or entry.moving.at is None:
        return None
    at = float(epoch_seconds(entry.moving.at))
    if told is None:
        return at
    known = told.get(entry.pod_uid)
    due = at + MOST_DELAY if known is None else known + _notice(policy, told)
    return min(max(at, due), at + MOST_DELAY)


def _notice(policy: CpuPolicySpec, told: Told | None) -> float:
    """Seconds from when a workload is told until its CPUs leave."""
    notice = min(duration_seconds(policy.dynamic.notice), MINUTE)
    return notice if told is None else notice + SHOWN_SECONDS


def _is_in_force(entry: ContainerAssignment, assignment: AssignmentView) -> bool:
    """Whether the enforcer reports that the container has just what the spec says.

    It does not report a container that does not run; then it has to have accepted the spec.
    """
    moving = entry.moving
    for one in assignment.status.containers:
        if one.key == entry.key:
            bound = not (moving and moving.leaving_mems) or one.mems == entry.mems
            return one.cpus == entry.cpus and bound
    return assignment.status.observed_generation >= assignment.generation


def move_rules(
    assignment: AssignmentView, policy: CpuPolicySpec, pods: Iterable[PodView], now: float
) -> MoveRules | None:
    """Which containers may be moved now; None if the mode moves none.

    None begins to move before the enforcer has accepted the newest spec.
    """
    if policy.mode != "Dynamic":
        return None
    spec, dynamic = assignment.spec, policy.dynamic
    chosen = {pod.uid for pod in pods if selects(dynamic.pod_selector, pod.labels)}
    allowed = {
        one.key: one
        for one in spec.containers
        if one.exclusive and not one.claimed and one.pod_uid in chosen
    }
    pause = duration_seconds(dynamic.move_pause)
    moved = sum(_moved_within(one, MINUTE, now) for one in spec.containers)
    return MoveRules(
        allowed=frozenset(allowed),
        paused=frozenset(key for key, one in allowed.items() if _moved_within(one, pause, now)),
        left=dynamic.max_moves_per_minute - moved if _is_accepted(assignment) else 0,
        most=dynamic.max_moves_per_minute,
        now=time_text(now),
        moves_memory=dynamic.move_memory,
    )


def _is_accepted(assignment: AssignmentView) -> bool:
    status = assignment.status
    refused = find(status.conditions, ConditionType.STALLED)
    is_stalled = refused is not None and refused.status == "True"
    return status.observed_generation >= assignment.generation and not is_stalled


def next_step_at(
    spec: NodeAssignmentSpec,
    policy: CpuPolicySpec,
    waiting: Sequence[Waiting],
    now: float,
    told: Told | None = None,
) -> float | None:
    """When a move can go on, or begin, although nothing else happens; None if that is never."""
    times = [
        due
        for one in spec.containers
        if one.moving is not None
        and (due := _due(one, policy, told)) is not None
        and not is_dropped(one)
    ]
    waits = any(isinstance(one, Queued) and one.moving for one in waiting)
    if waits or (policy.mode == "Dynamic" and any(one.outdated for one in spec.containers)):
        times += _ends_of_pauses(spec, policy)
    return min((one for one in times if one > now), default=None)


def _ends_of_pauses(spec: NodeAssignmentSpec, policy: CpuPolicySpec) -> Iterator[float]:
    pause = duration_seconds(policy.dynamic.move_pause)
    for one in spec.containers:
        if one.moved_at:
            yield epoch_seconds(one.moved_at) + pause
            yield epoch_seconds(one.moved_at) + MINUTE


def _moved_within(entry: ContainerAssignment, span: float, now: float) -> bool:
    return entry.moved_at is not None and abs(now - epoch_seconds(entry.moved_at)) < span
