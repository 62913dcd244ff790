"""A background task that runs on request, and again after a back-off if it failed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.kept_error import without_frames

LOG: Final = logging.getLogger(__name__)


def _no_wake() -> None:
    """Do nothing."""


@dataclass(eq=False, slots=True)
class Worker:
    """Runs `work` in the background, once for all requests made before it starts.

    `work` brings the outside world to the newest wanted state, which the caller stores. It returns
    None, or the seconds after which it must run again unless it is requested earlier. A pause that
    no request may shorten is a sleep inside `work`.

    For a queue, the caller appends an item and calls `request`, and `work` takes items until none
    is left. An item to be tried again stays in the queue.

    All methods must be called in the event loop's thread, and `run` by one task at a time.

    Attributes:
        name: identifies the task in logs.
        work: see above; never runs twice at the same time.
        expected: errors of the outside world. Any other exception is a defect and is logged with
            its traceback. Both are retried.
        failure: the log line for an expected error, written when its type differs from the last
            one's; empty if `work` logs it.
        wake: called after each change of `problem`; must not raise.
        backoff: how long to wait after a failure; by default 0.5 s at most, growing to 30 s. An
            error's `retry_after_seconds` is added to it.
        clock: the machine's clock by default.
        problem: why the last run failed; None after a success.
    """

    name: str
    work: Callable[[], Awaitable[float | None]]
    _: KW_ONLY
    expected: tuple[type[Exception], ...] = ()
    failure: str = "a background task failed, it will be retried"
    wake: Callable[[], object] = _no_wake
    backoff: Backoff = field(default_factory=Backoff)
    clock: Clock = field(default_factory=SystemClock)
    problem: Exception | None = field(default=None, init=False)
    _due: float | None = field(default=None, init=False)
    _requested: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _urgent: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def request(self, *, skip_backoff: bool = False) -> None:
        """Ask for a run; returns at once. A request during a run leads to one more run.

        Args:
            skip_backoff: run even if the last run failed a moment ago, because the wanted state is
                a different one now. Ends a wait that the server asked for as well.
        """
        self._requested.set()
        if skip_backoff:
            self._urgent.set()

    def note_progress(self) -> None:
        """Report that a run that has not ended works: clears `problem` and the back-off.

        For `work` that runs for as long as a connection lasts.
        """
        self.backoff.reset()
        self._note(None)

    async def run(self) -> None:
        """Serve requests until cancelled.

        If `run` is called again after that, a run that was interrupted is repeated, one that failed
        is tried again at once, and one that must come again comes at its time.
        """
        while True:
            await self.clock.wait(self._requested, self._pause_seconds())
            self._requested.clear()
            self._urgent.clear()
            try:
                pause_seconds = await self.work()
            except asyncio.CancelledError:
                self._requested.set()
                raise
            except Exception as error:  # noqa: BLE001 - a background task is one unit of work
                self._requested.set()
                self._note_failure(error)
                await self.clock.wait(self._urgent, self._backoff_seconds(error))
            else:
                now = self.clock.monotonic()
                self._due = None if pause_seconds is None else now + pause_seconds
                self.note_progress()

    def _pause_seconds(self) -> float | None:
        return None if self._due is None else max(0.0, self._due - self.clock.monotonic())

    def _note_failure(self, error: Exception) -> None:
        extra = {"task": self.name, "error": error}
        if not isinstance(error, self.expected):
            LOG.error("a background task failed unexpectedly", extra=extra, exc_info=error)
        elif self.failure and type(error) is not type(self.problem):
            LOG.warning(self.failure, extra=extra)
        self._note(without_frames(error))

    def _note(self, problem: Exception | None) -> None:
        changed = repr(problem) != repr(self.problem)
        self.problem = problem
        if changed:
            self.wake()

    def _backoff_seconds(self, error: Exception) -> float:
        return self.backoff.next_seconds(getattr(error, "retry_after_seconds", None))
