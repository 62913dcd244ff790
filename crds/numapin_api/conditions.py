"""Condition types, reasons, and how to merge them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import Field

from numapin_api.wire import WireModel


class ConditionType(StrEnum):
    """The three conditions that every object of ours carries.

    Source: kstatus, the convention by which Argo CD and Flux judge health.
    """

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Reason(StrEnum):
    """Why a condition is as it is; CamelCase words that scripts may match."""

    IN_FORCE = "InForce"
    ENFORCED = "Enforced"
    NOT_STALLED = "NotStalled"
    SETTLED = "Settled"
    NO_NODES_SELECTED = "NoNodesSelected"
    WAITING_FOR_TOPOLOGY = "WaitingForTopology"
    WAITING_FOR_ENFORCER = "WaitingForEnforcer"
    WAITING_FOR_CONTAINERS = "WaitingForContainers"
    WAITING_FOR_ASSIGNMENT = "WaitingForAssignment"
    APPLYING = "Applying"
    OVERRULED = "Overruled"
    UNSUPPORTED_FIELD = "UnsupportedField"
    INVALID_POLICY = "InvalidPolicy"
    IMPOSSIBLE_ON_NODE = "ImpossibleOnNode"
    NODES_STALLED = "NodesStalled"
    INVALID_ASSIGNMENT = "InvalidAssignment"
    INVALID_LOCAL_COPY = "InvalidLocalCopy"
    KUBELET_STATIC_POLICY = "KubeletStaticPolicy"
    CGROUP_WRITE_FAILED = "CgroupWriteFailed"
    CGROUPS_READ_ONLY = "CgroupsReadOnly"
    WATCH_INCOMPLETE = "WatchIncomplete"
    RUNTIME_UNAVAILABLE = "RuntimeUnavailable"
    RUNTIME_UNSUPPORTED = "RuntimeUnsupported"
    RUNTIME_REFUSED = "RuntimeRefused"
    SYSTEMD_UNAVAILABLE = "SystemdUnavailable"
    SYSTEMD_REFUSED = "SystemdRefused"
    TOPOLOGY_UNREADABLE = "TopologyUnreadable"


class Condition(WireModel):
    """One aspect of an object's state. Source: Kubernetes `metav1.Condition`."""

    type: str = Field(
        description="Ready, Reconciling or Stalled.",
        max_length=316,
        min_length=1,
    )
    status: Literal["True", "False", "Unknown"] = Field(
        description="Whether the condition holds: True, False or Unknown."
    )
    observed_generation: int = Field(
        default=0,
        ge=0,
        description="The metadata.generation that this condition was judged from.",
    )
    last_transition_time: str = Field(
        description="When the condition last changed from one status to another.",
        json_schema_extra={"format": "date-time"},
    )
    reason: str = Field(
        description="Why the condition has its status, as one CamelCase word.",
        max_length=1024,
        min_length=1,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    )
    message: str = Field(
        default="", description="The same for people, with the numbers.", max_length=32768
    )


class Verdict(NamedTuple):
    """What one condition is to say from now on; the time of change is for `merge` to find."""

    type: ConditionType
    holds: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why an object is not as it should be yet; becomes a condition.

    Attributes:
        reason: one CamelCase word.
        message: the same for people, with the numbers.
    """

    reason: str
    message: str


def merge(
    before: Sequence[Condition], verdicts: Iterable[Verdict], generation: int, now: str
) -> tuple[Condition, ...]:
    """The conditions after `verdicts`, sorted by type; foreign conditions stay.

    Args:
        before: the conditions the object has.
        verdicts: what to say; each type at most once.
        generation: the `metadata.generation` judged.
        now: the time, RFC 3339, used where a status changes.
    """
    known = {condition.type: condition for condition in before}
    for verdict in verdicts:
        old = known.get(verdict.type)
        status: Literal["True", "False"] = "True" if verdict.holds else "False"
        since = old.last_transition_time if old and old.status == status else now
        known[verdict.type] = Condition(
            type=verdict.type.value,
            status=status,
            observed_generation=generation,
            last_transition_time=since,
            reason=str(verdict.reason),
            message=verdict.message,
        )
    return tuple(known[name] for name in sorted(known))


def find(conditions: Sequence[Condition], wanted: ConditionType) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((one for one in conditions if one.type == wanted), None)
