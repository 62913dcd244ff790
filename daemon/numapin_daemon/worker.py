"""A background task that runs on request, and again after a back-off if it failed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Generic, TypeVar

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.kept_error import without_frames

LOG: Final = logging.getLogger(__name__)

Wanted = TypeVar("Wanted")
Keeper = TypeVar("Keeper")


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


@dataclass(eq=False, slots=True)
class Looks(Generic[Wanted, Keeper]):
    """The work of a `Worker` that keeps files of the kernel as they are wanted, and restores them.

    The keeper has read what earlier processes saved. It is made for the first look, and dropped
    once nothing is left to do.

    Attributes:
        is_needed: whether something must be kept like this, or may have to be restored.
        keeper: makes the keeper; called in a thread.
        look: looks once; returns after how many seconds it must look again, None if nothing is
            left to do.
        rest: called where no look is needed.
    """

    is_needed: Callable[[Wanted], bool]
    keeper: Callable[[], Keeper]
    look: Callable[[Keeper, Wanted], Awaitable[float | None]]
    rest: Callable[[], object] = bool
    _wanted: Wanted | None = field(default=None, init=False)
    """None while nothing may be written."""
    _keeper: Keeper | None = field(default=None, init=False)

    def want(self, wanted: Wanted) -> bool:
        """Keep the files like this from now on; whether that is something else than before."""
        is_news = wanted != self._wanted
        self._wanted = wanted
        return is_news

    def pause(self) -> None:
        """Write nothing until something is wanted again."""
        self._wanted = None

    async def make(self) -> float | None:
        """One look, for what was wanted at its beginning, if one is needed; see `look`."""
        wanted = self._wanted
        if wanted is None:
            return None
        if not self.is_needed(wanted):
            self._keeper = None
            self.rest()
            return None
        if self._keeper is None:
            self._keeper = await asyncio.to_thread(self.keeper)
        again_seconds = await self.look(self._keeper, wanted)
        if again_seconds is None:
            self._keeper = None
        return again_seconds
