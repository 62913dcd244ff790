"""How long a node keeps its assignment after its policy went, in case the policy returns."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import MAX_SECONDS, duration_seconds
from numapin_daemon.clock import Clock
from numapin_operator.nodes.decide import NodePicture

DEFAULT_SECONDS: Final = duration_seconds(CpuPolicySpec().release_delay)
"""For a policy that this operator has not seen govern the node, such as before a restart."""

TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class _Release:
    """When a node's assignment goes.

    Attributes:
        due: on the monotonic clock.
        at: the same time as text, as it is written to the assignment.
        delay_seconds: how long the assignment stays in all.
    """

    due: float
    at: str
    delay_seconds: int


class ReleaseDelays:
    """Measures how long each node has had something to release.

    The time begins when an operator first sees it and is written to the assignment, where the next
    operator finds it.
    """

    def __init__(self, clock: Clock) -> None:
        """Delay nothing yet; `clock` measures the delays."""
        self._clock = clock
        self._delays: dict[str, int] = {}
        self._releases: dict[str, _Release] = {}

    def release_at(self, picture: NodePicture) -> str | None:
        """Until when the node's assignment stays although no policy wants it; None if it need not.

        RFC 3339.
        """
        name, governing = picture.name, next(iter(picture.ranked), None)
        if governing is not None:
            self._remember(name, duration_seconds(governing.spec.release_delay))
        wanted = governing is not None and governing.spec.mode != "None"
        if picture.node is None or wanted or not _has_pools(picture):
            self._releases.pop(name, None)
            if picture.node is None:
                self._delays.pop(name, None)
            return None
        release = self._releases[name] = self._release(name, picture)
        return release.at if release.due > self._clock.monotonic() else None

    def over_at(self, name: str) -> float | None:
        """When the delay of a node will be over, on the clock's monotonic time; None if it is."""
        release = self._releases.get(name)
        if release is None or release.due <= self._clock.monotonic():
            return None
        return release.due

    def _remember(self, name: str, delay_seconds: int) -> None:
        self._delays[name] = delay_seconds

    def _release(self, name: str, picture: NodePicture) -> _Release:
        """When the node's assignment goes: as before, by what is written there, or from now on."""
        delay = self._delays.get(name)
        if known := self._releases.get(name):
            if delay is None or delay == known.delay_seconds:
                return known
            return self._at(known.due - known.delay_seconds + delay, delay)
        seconds = DEFAULT_SECONDS if delay is None else delay
        now = self._clock.monotonic()
        if picture.assignment and (written := picture.assignment.spec.release_at):
            most = MAX_SECONDS if delay is None else delay
            left = min(max(0.0, _left_seconds(written, self._clock.now())), most)
            return replace(self._at(now + left, seconds), at=written)
        return self._at(now + seconds, seconds)

    def _at(self, due: float, delay_seconds: int) -> _Release:
        at = self._clock.now() + timedelta(seconds=due - self._clock.monotonic())
        if at.microsecond:
            at += timedelta(seconds=1)  # the text has whole seconds: never too early
        return _Release(due, at.strftime(TIME_FORMAT), delay_seconds)


def _left_seconds(written: str, now: datetime) -> float:
    """How long until a time of an assignment; 0 if it is no time."""
    try:
        at = datetime.strptime(written, TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return 0.0
    return (at - now).total_seconds()


def _has_pools(picture: NodePicture) -> bool:
    return picture.assignment is not None and picture.assignment.spec.pools is not None
