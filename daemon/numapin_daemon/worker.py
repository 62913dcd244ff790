"""One background task: runs when it is asked to, and again after a back-off when it failed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from numapin_daemon.backoff import Backoff
from numapin_daemon.clock import Clock, SystemClock

LOG: Final = logging.getLogger(__name__)


def _wake_nobody() -> None:
    """Do nothing."""


@dataclass(eq=False, slots=True)
class Worker:
    """Runs `work` in the background, once for all requests that came before it starts.

    `work` brings the outside world to the newest wanted state, which its caller keeps. It returns
    None, or the seconds after which it must run again unless it is requested earlier. A pause that
    a request must not shorten is a sleep inside `work`.

    A queue needs no other kind of worker: the caller appends the item and calls `request`, and
    `work` takes items until none is left. An item that must be tried again stays in the queue.

    Attributes:
        name: what logs call the task.
        work: see above; never runs twice at the same time.
        expected: errors of the outside world that explain themselves. Any other exception is a
            defect: it is logged with its traceback. Both are retried.
        failure: the log line of an expected error when it first occurs; empty if `work` logs it.
        wake: called whenever `problem` has changed.
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
    wake: Callable[[], object] = _wake_nobody
    backoff: Backoff = field(default_factory=Backoff)
    clock: Clock = field(default_factory=SystemClock)
    problem: Exception | None = field(default=None, init=False)
    _requested: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _urgent: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def request(self, *, skip_backoff: bool = False) -> None:
        """Ask for a run; returns at once. A request during a run leads to one more run.

        Args:
            skip_backoff: run although the last run failed a moment ago, because what is wanted
                now is something else.
        """
        self._requested.set()
        if skip_backoff:
            self._urgent.set()

    async def run(self) -> None:
        """Serve requests until cancelled."""
        pause_seconds: float | None = None
        while True:
            await self.clock.wait(self._requested, pause_seconds)
            self._requested.clear()
            self._urgent.clear()
            try:
                pause_seconds = await self.work()
            except Exception as error:  # noqa: BLE001 - a background task is one unit of work
                self._note_failure(error)
                await self.clock.wait(self._urgent, self._backoff_seconds(error))
                self._requested.set()
            else:
                self.backoff.reset()
                self._note(None)

    def _note_failure(self, error: Exception) -> None:
        extra = {"task": self.name, "error": error}
        if not isinstance(error, self.expected):
            LOG.error("a background task failed unexpectedly", extra=extra, exc_info=error)
        elif self.failure and type(error) is not type(self.problem):
            LOG.warning(self.failure, extra=extra)
        self._note(error)

    def _note(self, problem: Exception | None) -> None:
        changed = repr(problem) != repr(self.problem)
        self.problem = problem
        if changed:
            self.wake()

    def _backoff_seconds(self, error: Exception) -> float:
        return self.backoff.next_seconds(getattr(error, "retry_after_seconds", None))
