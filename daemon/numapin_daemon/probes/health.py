"""What the probes of a daemon, and of a loop in it, answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock

NO_PASSES: Final = "first pass"
"""What is missing on /readyz until a loop's first pass has ended."""


def _nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Health:
    """What the probes answer; each function is called for each request, in any thread.

    Attributes:
        missing: what is not ready yet, with the reason of each; if empty, the daemon is ready.
        fatal: why a restart is needed; empty if none is.
        role: what a ready daemon does, such as "standing by"; may be empty.
        remark: what is wrong although a restart would not help; may be empty.
        metrics: the text of /metrics; None if that page does not exist.
        documents: further pages in JSON, by their path.
    """

    missing: Callable[[], Mapping[str, str]]
    fatal: Callable[[], str] = _nothing
    role: Callable[[], str] = _nothing
    remark: Callable[[], str] = _nothing
    metrics: Callable[[], str] | None = None
    documents: Mapping[bytes, Callable[[], str]] = field(default_factory=dict)


@dataclass(slots=True)
class LoopHealth:
    """The health of a loop that must complete a pass from time to time.

    Attributes:
        stale_after_seconds: if no pass has ended for longer, a restart is needed.
        clock: the machine's clock by default.
        outdated: why a restart is needed; set by the loop, empty if none is.
        remark: what is wrong although a restart would not help; set by the loop.
    """

    stale_after_seconds: float
    clock: Clock = field(default_factory=SystemClock)
    outdated: str = ""
    remark: str = ""
    _missing: Mapping[str, str] = field(init=False)
    _passed_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.passed({NO_PASSES: "not ended yet"})

    def passed(self, missing: Mapping[str, str]) -> None:
        """Record the end of a pass; `missing` is as in `Health`."""
        self._passed_at = self.clock.monotonic()
        self._missing = dict(missing)

    def health(self) -> Health:
        """What the probes answer."""
        return Health(lambda: self._missing, self._fatal, remark=lambda: self.remark)

    def _fatal(self) -> str:
        idle_seconds = self.clock.monotonic() - self._passed_at
        if idle_seconds > self.stale_after_seconds:
            return f"the last pass ended {idle_seconds:.0f} s ago"
        return self.outdated
