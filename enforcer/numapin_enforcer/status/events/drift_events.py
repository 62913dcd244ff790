"""Which external cpuset changes get an Event and a line in the log. Does no I/O."""

from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_enforcer.plan.drift import Drift

QUIET_SECONDS: Final = 60.0
"""After an Event about a cgroup there is no other one about it for so long."""

BURST: Final = 10
REFILL_SECONDS: Final = 10.0
"""A node posts at most BURST Events at once, and one more each REFILL_SECONDS."""

MOST_REMEMBERED: Final = 256
"""How many cgroups are remembered at most; pods come and go."""


@dataclass(slots=True)
class DriftEvents:
    """Lets through each cgroup's first drift, then few of them, and never a flood.

    The log goes by the same rule: a flood of its lines would drop all others of the node.
    """

    _posted_at: dict[str, float] = field(default_factory=dict)
    _suppressed: dict[str, int] = field(default_factory=dict)
    _left_out: int = 0
    _tokens: TokenBucket = field(default_factory=lambda: TokenBucket(BURST, 1 / REFILL_SECONDS))

    def note(self, drift: Drift, now_seconds: float) -> str:
        """The text of the Event to post; empty for none. Later Events count those left out."""
        if len(self._posted_at) + len(self._suppressed) > MOST_REMEMBERED:
            self._forget(now_seconds)
        last = self._posted_at.get(drift.path)
        quiet = last is not None and now_seconds - last < QUIET_SECONDS
        if quiet or not self._tokens.take(1, now_seconds):
            self._left_out += 1
            self._suppressed[drift.path] = self._suppressed.get(drift.path, 0) + 1
            return ""
        self._posted_at[drift.path] = now_seconds
        more = self._suppressed.pop(drift.path, 0)
        return f"{drift}; {more} more times since the last Event" if more else str(drift)

    def pop_left_out(self) -> int:
        """How many drifts of all cgroups were left out since the last call."""
        left_out, self._left_out = self._left_out, 0
        return left_out

    def _forget(self, now_seconds: float) -> None:
        """Drop cgroups whose last Event is long ago or was never posted."""
        posted = self._posted_at.items()
        recent = {path for path, at in posted if now_seconds - at < QUIET_SECONDS}
        for known in (self._posted_at, self._suppressed):
            for path in known.keys() - recent:
                del known[path]
