"""The three conditions of a node, and notes for the message of `Ready`. Does no I/O."""

from collections.abc import Sequence

from numapin_api.conditions.reasons import ConditionType, Obstacle, Reason, Verdict
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_api.text import first_texts, join_texts
from numapin_enforcer.cgroups.tree import Unread

SHOWN = 3
"""How many failures or containers a condition names."""

UNKNOWN_LENGTH = 1024
"""How many characters of a condition name unknown fields."""


def judge(
    stalled: Obstacle | None,
    working: Obstacle | None,
    fine: str,
    fine_reason: Reason = Reason.ENFORCED,
) -> tuple[Verdict, ...]:
    """The three conditions from what is wrong.

    Args:
        stalled: what a person must repair.
        working: what is not finished yet, and needs no help.
        fine: the message for a healthy node.
        fine_reason: its reason.
    """
    lacking = stalled or working
    ready = (
        Verdict(ConditionType.READY, False, lacking.reason, lacking.message)
        if lacking
        else Verdict(ConditionType.READY, True, fine_reason, fine)
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


def unknown_note(fields: Sequence[str]) -> str:
    """What to say of fields that a later operator has written; empty if there are none."""
    if not fields:
        return ""
    return f"this enforcer does not know {join_texts(fields, ', ', UNKNOWN_LENGTH)}: no effect"


def foreign_note(containers: Sequence[str]) -> str:
    """Which exclusive containers have other tasks on their CPUs; empty if none has."""
    if not containers:
        return ""
    shown = first_texts(containers, SHOWN, "; ")
    return (
        f"other tasks use the CPUs of container {shown}: numapin check names them; keep programs "
        "of the host off by system.processes KeepOff of the policy or AllowedCPUs= of system.slice "
        "(CPUAffinity= may confine containers too)"
    )


def unread_note(unread: Sequence[Unread], spec: NodeAssignmentSpec | None) -> str:
    """Which pods have cgroups that are not read; empty if all are. No container loses by it."""
    if not unread:
        return ""
    names = {one.pod_uid: f"{one.namespace}/{one.pod}" for one in spec.containers} if spec else {}
    pods = [
        f"pod {names.get(one.pod_uid) or one.pod_uid or 'unknown'}: {one.path}: {one.why}"
        for one in unread
    ]
    shown = first_texts(pods, SHOWN, "; ")
    return f"not all cgroups are read, they count as having what their parent has: {shown}"
