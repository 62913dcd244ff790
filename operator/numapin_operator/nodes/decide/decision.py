"""What a decision about one node depends on, and what it says.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_operator.observe.records import AssignmentView, NodeView, PolicyView
from numapin_operator.placement import PodView, Queued, Unaccepted
from numapin_operator.policies.status import NodeOutcome


@dataclass(frozen=True, slots=True)
class NodePicture:
    """Everything that a decision about one node depends on.

    Attributes:
        name: the node's name.
        node: None if the Node was deleted.
        ranked: the policies that select it, the governing one first.
        assignment: its NodeAssignment; None if it does not exist.
        pods: the pods bound to it, marked by the governing policy's selectors.
        release_at: until when the assignment stays although no policy wants it; None if it need
            not.
        now: the time in seconds since 1970; None if no move may begin or go on.
        told: since when pods know which CPUs leave them; None if nothing waits for that.
        lost: what the assignment said before it was deleted, or came back in an older state.
        stays_until: until when the assignment stays although its Node is gone, in seconds since
            1970; None if it need not.
        release_delay: `spec.releaseDelay` of the policy that governs the node, or governed it last;
            None if none has been observed.
    """

    name: str
    node: NodeView | None
    ranked: tuple[PolicyView, ...]
    assignment: AssignmentView | None
    pods: tuple[PodView, ...]
    release_at: str | None = None
    now: float | None = None
    told: Mapping[str, float] | None = None
    release_delay: str | None = None
    stays_until: float | None = None
    lost: NodeAssignmentSpec | None = None


class Write(Enum):
    """The write that a NodeAssignment needs."""

    NOTHING = "nothing"
    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write, and the outcome of the governing policy.

    Attributes:
        write: the write that the NodeAssignment needs.
        spec: for CREATE and REPLACE; else None.
        outcome: None if no policy governs the node.
        waiting: pods that wait for ending or moving ones, or for their kubelet.
        again_at: when to decide again although nothing has happened; None if that is not needed.
        releasing: the assignment is deleted once the enforcer has released the node.
    """

    write: Write
    spec: NodeAssignmentSpec | None = None
    outcome: NodeOutcome | None = None
    waiting: tuple[Queued | Unaccepted, ...] = ()
    again_at: float | None = None
    releasing: bool = False
