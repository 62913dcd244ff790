"""Whether this operator leads now, and the work that lasts for as long as it does."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from threading import Lock
from typing import Any, NoReturn

from numapin_client.errors import ClientError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.probes.health import LoopHealth


class NotLeadingError(ClientError):
    """A write was not sent, because another operator may lead by now."""


class Leadership:
    """Whether this operator leads.

    The election runs in a thread of its own, so all methods but `run_terms` may be called in any
    thread.

    Attributes:
        leading: set while this operator leads, for waiting. It belongs to the event loop in which
            the object was made, and is late when that loop stands still; `holds` is not.
        clock: measures how long the lead lasts.
        election: the health of the election, in which a pass is an attempt to take or renew the
            Lease; None while this operator takes no part in one.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.leading = asyncio.Event()
        self.election: LoopHealth | None = None
        self._lost = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._until = -math.inf
        self._changing = Lock()

    @property
    def is_begun(self) -> bool:
        """Whether a term lasts, or is over and has not been ended."""
        return self._until != -math.inf

    def holds(self) -> bool:
        """Whether this operator may write now."""
        return self.clock.monotonic() < self._until

    def check(self) -> None:
        """Do nothing if this operator may write now.

        Raises:
            NotLeadingError: it may not.
        """
        if not self.holds():
            raise NotLeadingError("not sent: this operator does not hold the Lease (any more)")

    def extend(self, until: float) -> None:
        """Lead until this time of the clock; begins a term unless one lasts."""
        with self._changing:
            begins, self._until = self._until == -math.inf, until
            if begins:
                self._in_loop(self._begin)

    def end(self) -> None:
        """End the term, if one lasts."""
        with self._changing:
            ends, self._until = self._until != -math.inf, -math.inf
            if ends:
                self._in_loop(self._end)

    async def run_terms(self, work: Callable[[], Coroutine[Any, Any, None]]) -> NoReturn:
        """Run `work` once in each term, until cancelled; it is cancelled at the term's end.

        A term also ends when its time is over and nobody has said so: the election may hang.

        Raises:
            ExceptionGroup: what `work` raised.
        """
        while True:
            await self.leading.wait()
            async with asyncio.TaskGroup() as tasks:
                term = tasks.create_task(work(), name="term")
                await self._wait_until_lost()
                term.cancel()

    async def _wait_until_lost(self) -> None:
        left_seconds = self._until - self.clock.monotonic()
        while left_seconds > 0:
            limited = math.isfinite(left_seconds)
            if await self.clock.wait(self._lost, left_seconds if limited else None):
                return
            left_seconds = self._until - self.clock.monotonic()
        self.end()
        await self._lost.wait()

    def _begin(self) -> None:
        self._lost.clear()
        self.leading.set()

    def _end(self) -> None:
        self.leading.clear()
        self._lost.set()

    def _in_loop(self, change: Callable[[], None]) -> None:
        """Run it in our loop; at once if that is the running one."""
        if asyncio.get_running_loop() is self._loop:
            change()
        else:
            self._loop.call_soon_threadsafe(change)
