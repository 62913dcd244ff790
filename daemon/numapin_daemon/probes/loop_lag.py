"""How late an event loop runs what is due: for /healthz and for measurements."""

from dataclasses import KW_ONLY, dataclass, field
from typing import NoReturn

from numapin_daemon.clock import Clock, SystemClock


@dataclass(slots=True)
class LoopLag:
    """A task that sleeps again and again, and records how late it is woken.

    One step of the loop that takes S seconds is recorded as at least S - `pause_seconds`, because
    the sleep may still have lasted that long when the step began. The machine's own delays count
    as well.

    Attributes:
        pause_seconds: how long each sleep lasts.
        clock: the machine's clock by default.
        longest_seconds: the longest delay so far; 0 before the first sleep has ended.
    """

    pause_seconds: float = 0.02
    _: KW_ONLY
    clock: Clock = field(default_factory=SystemClock)
    longest_seconds: float = field(default=0.0, init=False)
    _due: float | None = field(default=None, init=False)

    async def run(self) -> NoReturn:
        """Measure the loop that runs this task, until cancelled."""
        try:
            while True:
                self._due = self.clock.monotonic() + self.pause_seconds
                await self.clock.sleep(self.pause_seconds)
                self.longest_seconds = max(self.longest_seconds, self.current_seconds())
        finally:
            self._due = None

    def current_seconds(self) -> float:
        """How late the loop is now; 0 if nothing is due, or while nothing is measured.

        May be called in any thread: a loop that stands still cannot ask this itself.
        """
        due = self._due
        return 0.0 if due is None else max(0.0, self.clock.monotonic() - due)

    def take_longest_seconds(self) -> float:
        """The longest delay since the last call; a delay that still lasts counts as well."""
        longest = max(self.longest_seconds, self.current_seconds())
        self.longest_seconds = 0.0
        return longest
