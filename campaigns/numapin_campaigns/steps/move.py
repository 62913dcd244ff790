"""The steps of a move in mode Dynamic, as docs/operator.md counts them."""

from collections.abc import Callable
from typing import Final

from numapin_api.nodeassignment import ContainerAssignment
from numapin_api.status.containers import ContainerStatus
from numapin_campaigns.parts.all_parts import Parts
from numapin_campaigns.parts.guest import agents
from numapin_campaigns.parts.part import OPERATOR, STANDBY, Part
from numapin_campaigns.steps.passing import Step
from numapin_lab.vm.node import guest_standby
from numapin_lab.vm.running_lab import RunningVmLab

MOVE_STEPS: Final = (
    *("edited", "accepted", "begun", "both in force", "time written", "old ones dropped"),
    "reported",
)
"""The first two are those of the edit of the policy for which it moves."""


def parts_of_move(lab: RunningVmLab) -> Parts:
    """The parts of a lab whose node is a virtual machine, with a standby in it."""
    standby = Part(guest_standby(lab.cluster.vm))  # nothing waits until it is ready
    return Parts({**agents(lab, lab.agent(OPERATOR)), STANDBY: standby})


def steps_of_move(lab: RunningVmLab, name: str) -> list[Step]:
    """The steps of a move of a pod's one container after an edit of the policy.

    While the time is written, the operator takes the next step when the notice is over; the
    enforcer is held for both.
    """

    def is_edited() -> bool:
        entry, _ = _entry_and_status(lab, name)
        return entry is not None and bool(entry.outdated)

    def is_moving() -> bool:
        entry, _ = _entry_and_status(lab, name)
        return entry is not None and entry.moving is not None

    def has_time() -> bool:
        entry, _ = _entry_and_status(lab, name)
        return entry is not None and entry.moving is not None and entry.moving.at is not None

    def is_dropped() -> bool:
        entry, _ = _entry_and_status(lab, name)
        return bool(entry and entry.moving and entry.moving.leaving.isdisjoint(entry.cpus))

    def is_reported() -> bool:
        entry, status = _entry_and_status(lab, name)
        return bool(entry and status and _sets(entry) == _sets(status))

    reached: tuple[Callable[[], bool], ...] = (
        *(is_edited, lab.in_force),
        *(is_moving, is_reported, has_time, is_dropped, is_reported),
    )
    operator, enforcer = ("operator",), ("enforcer",)
    held = (enforcer, operator, enforcer, operator, enforcer, enforcer, operator)
    return [Step(*one) for one in zip(MOVE_STEPS, held, reached, strict=True)]


def _sets(one: ContainerAssignment | ContainerStatus) -> tuple[str, str]:
    return str(one.cpus), str(one.mems)


def _entry_and_status(
    lab: RunningVmLab, name: str
) -> tuple[ContainerAssignment | None, ContainerStatus | None]:
    """What the spec says of the container, and what is reported of it."""
    assignment = lab.assignment()
    if assignment is None:
        return None, None
    entry = next((one for one in assignment.spec.containers if one.pod == name), None)
    reported = assignment.status.containers if assignment.status else ()
    uid = entry.pod_uid if entry else ""
    return entry, next((one for one in reported if one.pod_uid == uid), None)
