"""One node of the fleet, as a line and as a cell of the map.

Does no I/O.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from numapin_api.conditions.reasons import ConditionType, meaning_of
from numapin_cli.live.node_state import NodeState
from numapin_page.views.room import Room, fitting, is_fragmented, is_full, rooms

Json = dict[str, Any]

MESSAGE: Final = 400
"""Characters of a message in a line; the page of the node has all of it."""


class Kind(StrEnum):
    """What of a node is seen first; each has a colour and a sign on the page."""

    STALLED = "stalled"
    """Nothing of its assignment is carried out until somebody acts."""
    UNREADY = "unready"
    """The kernel does not have what was decided, or the enforcer is silent."""
    AWAY = "away"
    """No enforcer can answer there: the Node is not Ready, or does not run Linux."""
    FRAGMENTED = "fragmented"
    """See `is_fragmented`."""
    FULL = "full"
    """No container gets another CPU of its own."""
    READY = "ready"
    UNGOVERNED = "ungoverned"
    """No policy selects it."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a node beside its NodeAssignment.

    Attributes:
        away: why no enforcer is expected to answer there; empty if one is.
        whole_cores: whether its policy gives whole cores only.
    """

    away: str = ""
    whole_cores: bool = False


def kind_of(state: NodeState, beside: Beside, there: Sequence[Room]) -> Kind:
    """What of a node is seen first."""
    if state.view is None:
        return Kind.STALLED if state.problem else Kind.UNGOVERNED
    if not state.is_ready:
        if beside.away:
            return Kind.AWAY
        ready = state.ready
        is_stalled = ready is not None and ready.type == ConditionType.STALLED
        return Kind.STALLED if is_stalled or state.problem else Kind.UNREADY
    if there and is_full(there):
        return Kind.FULL
    return Kind.FRAGMENTED if is_fragmented(there) else Kind.READY


def rooms_of(state: NodeState, beside: Beside) -> list[Room]:
    """Its NUMA nodes; none if its hardware is not known or its CPUs are not divided."""
    view = state.view
    if view is None or view.topology is None:
        return []
    return rooms(view.spec, view.topology, whole_cores=beside.whole_cores)


def node_row(state: NodeState, beside: Beside) -> Json:
    """The line of a node."""
    there = rooms_of(state, beside)
    kind = kind_of(state, beside, there)
    return {
        "name": state.name,
        "policy": state.policy,
        "mode": state.mode,
        "kind": kind,
        "reason": _reason(state, beside, kind),
        "message": _message(state)[:MESSAGE],
        "exclusive": state.exclusive,
        "free": sum(len(one.free) for one in there),
        "cpus": sum(len(one.allocatable) for one in there),
        "largest": max((len(one.free) for one in there), default=0),
        "fits": fitting(there),
        "refused": state.refused,
        "drift": state.status.drift_count,
    }


def _reason(state: NodeState, beside: Beside, kind: Kind) -> str:
    """One word that says why; empty if there is nothing to say."""
    if kind is Kind.AWAY:
        return beside.away
    return "" if state.is_ready else state.readiness


def _message(state: NodeState) -> str:
    if state.problem:
        return state.problem
    if state.view is None or state.is_ready:
        return ""
    ready = state.ready
    said = ready.message if ready else ""
    return said or meaning_of(state.readiness)
