"""How long a node keeps its assignment after its policy went, in case the policy returns."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import MAX_SECONDS, duration_seconds
from numapin_daemon.clock import Clock
from numapin_operator.nodes.decide import NodePicture
from numapin_operator.policies.status import policy_fault

TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class _Release:
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


class ReleaseDelays:
    """Measures how long each node has had something to release.

    The time begins when an operator first sees it and is written to the assignment, where the next
    operator finds it. A policy that wants the node again, able to be put in force or not, ends it:
    what is then still written counts no more, and the next release has its whole delay.
    """

    def __init__(self, clock: Clock) -> None:
        """Delay nothing yet; `clock` measures the delays."""
        self._clock = clock
        self._releases: dict[str, _Release] = {}
        self._void: dict[str, str] = {}
        """Times of ended releases that may still be written to the assignment."""

    def release_at(self, picture: NodePicture) -> str | None:
        """Until when the node's assignment stays although no policy wants it; None if it need not.

        RFC 3339.
        """
        name, assignment = picture.name, picture.assignment
        if picture.node is None or assignment is None or assignment.spec.pools is None:
            self._releases.pop(name, None)
            self._void.pop(name, None)
            return None
        if is_wanted(picture):
            self._releases.pop(name, None)
            if assignment.spec.release_at:
                self._void[name] = assignment.spec.release_at
            return None
        release = self._releases[name] = self._release(picture, assignment.spec.release_at)
        return release.at if release.due > self._clock.monotonic() else None

    def over_at(self, name: str) -> float | None:
        """When the delay of a node will be over, on the clock's monotonic time; None if it is."""
        release = self._releases.get(name)
        if release is None or release.due <= self._clock.monotonic():
            return None
        return release.due

    def _release(self, picture: NodePicture, written: str | None) -> _Release:
        """When the node's assignment goes: as before, by what is written there, or from now on."""
        giver = next((one.uid for one in picture.ranked), "")
        delay = duration_seconds(picture.release_delay or CpuPolicySpec().release_delay)
        if known := self._releases.get(picture.name):
            return self._edited(known, giver, delay)
        now, announced = self._clock.monotonic(), _parsed(written)
        if written is None or announced is None or written == self._void.get(picture.name):
            return self._at(now + delay, delay, giver)
        left_seconds = max(0.0, (announced - self._clock.now()).total_seconds())
        # The policy whose delay was announced may never have been seen here.
        most_seconds = delay if giver else MAX_SECONDS
        return replace(self._at(now + min(left_seconds, most_seconds), delay, giver), at=written)

    def _edited(self, known: _Release, giver: str, delay: int) -> _Release:
        """A release under way; an edit of the policy that gives the node up can shorten it."""
        if not giver or delay == known.delay_seconds:
            return known
        if known.policy != giver:
            return replace(known, delay_seconds=delay, policy=giver)
        return self._at(known.due - known.delay_seconds + delay, delay, giver)

    def _at(self, due: float, delay_seconds: int, giver: str) -> _Release:
        at = self._clock.now() + timedelta(seconds=due - self._clock.monotonic())
        if at.microsecond:
            at += timedelta(seconds=1)  # the text has whole seconds: never too early
        return _Release(due, at.strftime(TIME_FORMAT), delay_seconds, giver)


def is_wanted(picture: NodePicture) -> bool:
    """Whether a policy wants the node; one that is stalled by a fault of its own does."""
    if not picture.ranked:
        return False
    governing = picture.ranked[0]
    return governing.spec.mode != "None" or policy_fault(governing) is not None


def _parsed(written: str | None) -> datetime | None:
    """A time of an assignment; None if it is no time."""
    try:
        return datetime.strptime(written or "", TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
