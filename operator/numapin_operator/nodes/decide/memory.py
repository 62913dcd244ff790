"""What a term remembers of one node, because the cluster does not say it. Does no I/O."""

from dataclasses import dataclass
from typing import NamedTuple


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
    delay_seconds: int
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
        waiting: UIDs of the pods that have been told that they wait.
        defect: the error that was logged last with its traceback; empty after a success.
    """

    release: Release | None = None
    void_release: str | None = None
    vanished_since: float | None = None
    unanswered_since: float | None = None
    waiting: frozenset[str] = frozenset()
    defect: str = ""


NOTHING = NodeMemory()
