"""What a decision about one node depends on, what it says, and what is remembered of it.

Does no I/O.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple

from numapin_api.meta.modes import is_enforced
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.placement import AwaitsDevices, PodView, Queued, Unaccepted, Waiting
from numapin_operator.policies.rollout import NO_TURN, Turn
from numapin_operator.policies.status import NodeOutcome

VANISHED_SECONDS: Final = 300.0
"""How long the assignment of a Node stays that is gone.

A Node that is deleted and registered again keeps its pods: they are deleted 40 s after it is gone.
Source: Kubernetes v1.36, podgc, `quarantineTime`.
"""


DEVICES_SECONDS: Final = 2.0
"""How long a new pod whose containers may start waits until its node reports its devices.

Before that it waits as long as it takes: an image, a volume or a network may take minutes.
"""


class Moment(NamedTuple):
    """One reading of the clock.

    Objects have dates and times, and waits are measured on the monotonic clock.

    Attributes:
        unix: seconds since 1970.
        monotonic: seconds on a clock that only goes forward.
    """

    unix: float
    monotonic: float

    def monotonic_at(self, unix: float) -> float:
        """The monotonic time of a date and time, which is not in the past."""
        return self.monotonic + max(0.0, unix - self.unix)

    def after(self, seconds: float) -> "Moment":
        """The moment so many seconds later."""
        return Moment(self.unix + seconds, self.monotonic + seconds)


@dataclass(frozen=True, slots=True)
class Release:
    """When a node's assignment goes.

    Attributes:
        due: on the monotonic clock.
        at: the same time as text, as it is written to the assignment.
        delay_seconds: how long the assignment stays in all.
        policy: the UID of the policy of mode None that gives the node up; empty if it is gone.
    """

    due: float
    at: str
    delay_seconds: float
    policy: str = ""


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """What a term remembers of one node. A restart or another leader begins with an empty one.

    Times are monotonic.

    Attributes:
        release: when its assignment goes that no policy wants; None if one does.
        void_release: the text of an ended release that may still be written to the assignment.
        vanished_since: since when it has an assignment and no Node.
        unanswered_since: since when its enforcer has not answered what is written.
        asking_since: since when containers of new pods may start whose places depend on devices
            that the kubelet gives, by UID; infinity if they may not yet.
        waiting: UIDs of the pods that have been told that they wait.
        defect: the error that was logged last with its traceback; empty after a success.
    """

    release: Release | None = None
    void_release: str | None = None
    vanished_since: float | None = None
    unanswered_since: float | None = None
    asking_since: Mapping[str, float] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    defect: str = ""


NOTHING = NodeMemory()


@dataclass(frozen=True, slots=True)
class NodePicture:
    """Everything that a decision about one node depends on.

    Attributes:
        name: the node's name.
        node: None if the Node was deleted.
        ranked: the policies that select it, the governing one first.
        assignment: its NodeAssignment; None if it does not exist.
        pods: the pods bound to it, marked by the governing policy's selectors.
        now: the time; None if no move may begin or go on, and no wait begin or end.
        told: since when pods know which CPUs leave them; None if nothing waits for that.
        lost: what the assignment said before it was deleted, or came back in an older state.
        as_lines: whether the assignment is to be written with lines.
        turn: by which policy it is planned, and why that is not the governing one, if so.
        claims_due: when claims of its pods must be read again, by the monotonic clock; None for
            never.
        memory: what this term remembers of it.
        other_writer: who else writes its NodeResourceTopology, which we must; None if nobody.
        release_delay: `spec.releaseDelay` of the policy that governs the node, or governed it last;
            None if none has been observed.
        wishes: pods that wait for a node and are to have a place on this one, the first first.
    """

    name: str
    node: NodeView | None
    ranked: tuple[PolicyView, ...]
    assignment: AssignmentView | None
    pods: tuple[PodView, ...]
    now: Moment | None = None
    told: Mapping[str, float] | None = None
    release_delay: str | None = None
    lost: NodeAssignmentSpec | None = None
    as_lines: bool = False
    turn: Turn = NO_TURN
    claims_due: float | None = None
    memory: NodeMemory = NOTHING
    wishes: tuple[PodView, ...] = ()
    other_writer: str | None = None

    def at(self, unix: float | None) -> "NodePicture":
        """The picture at a date and time, to foresee what is decided then; None for no time."""
        return replace(self, now=None if unix is None else Moment(unix, unix))

    @property
    def is_enforced(self) -> bool:
        """Whether pods and the node are changed by what is planned."""
        return bool(self.ranked) and is_enforced(self.ranked[0].spec.mode)

    @property
    def release_at(self) -> str | None:
        """Until when the assignment stays although no policy wants it; None if it need not.

        RFC 3339.
        """
        release = self.memory.release
        if release is None or self.now is None or release.due <= self.now.monotonic:
            return None
        return release.at

    @property
    def await_devices(self) -> frozenset[str]:
        """UIDs of the pods that are not placed before it is known which devices they have."""
        since, now = self.memory.asking_since, self.now
        if not since or now is None:
            return frozenset()
        return frozenset(uid for uid, at in since.items() if at + DEVICES_SECONDS > now.monotonic)

    @property
    def stays_until(self) -> float | None:
        """Until when the assignment stays although its Node is gone; None if it need not."""
        since, now = self.memory.vanished_since, self.now
        if since is None or now is None or since + VANISHED_SECONDS <= now.monotonic:
            return None
        return since + VANISHED_SECONDS


@dataclass(frozen=True, slots=True)
class OnPausedNode:
    """A pod about which nothing is decided because its node is paused.

    Attributes:
        pod: the pod that waits.
        why: why the node is paused.
    """

    pod: PodView
    why: str


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
        waiting: pods that wait for ending or moving ones, for their kubelet, until it is known
            which devices they have, or until their node is paused no more.
        again_at: when to decide again although nothing has happened, by the monotonic clock; None
            if that is not needed.
        releasing: the assignment is deleted once the enforcer has released the node.
        overdue: it is releasing, and the enforcer has not answered in time.
        memory: what to remember of the node once this is written.
    """

    write: Write
    spec: NodeAssignmentSpec | None = None
    outcome: NodeOutcome | None = None
    waiting: tuple[Waiting | OnPausedNode, ...] = ()
    again_at: float | None = None
    releasing: bool = False
    overdue: bool = False
    memory: NodeMemory = NOTHING

    @property
    def told_waiting(self) -> Iterator[Queued | Unaccepted | OnPausedNode]:
        """The pods that are told that they wait; a wait for devices is too short for that."""
        return (one for one in self.waiting if not isinstance(one, AwaitsDevices))
