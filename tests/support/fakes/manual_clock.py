"""A clock whose time passes only when a test says so."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from numapin_daemon.clock import Clock

LIMIT_SECONDS = 30.0
"""Real time after which `until` fails the test."""

TURNS = 50
"""Turns of the event loop that tasks get between two moments: each may wake the next one."""


class ManualClock(Clock):
    """Virtual time: a sleep ends when `advance` has reached its end, and takes no real time.

    The monotonic time starts at `start_seconds`, the date and time at 2030-01-01T00:00:00Z.
    """

    def __init__(self, start_seconds: float = 1000.0) -> None:
        self._start_seconds = self._now_seconds = start_seconds
        self._timers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now_seconds

    def now(self) -> datetime:
        passed = timedelta(seconds=self._now_seconds - self._start_seconds)
        return datetime(2030, 1, 1, tzinfo=UTC) + passed

    async def sleep(self, seconds: float) -> None:
        timer = self._timer(seconds)
        try:
            await timer
        finally:
            timer.cancel()

    async def wait(self, event: asyncio.Event, timeout_seconds: float | None = None) -> bool:
        if timeout_seconds is None or event.is_set():
            return await event.wait()
        timer = self._timer(timeout_seconds)
        waiting = asyncio.ensure_future(event.wait())
        try:
            done, _ = await asyncio.wait((timer, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            waiting.cancel()
        return waiting in done

    def stand_still(self, seconds: float) -> None:
        """Let time pass in which no task runs, as while the event loop is blocked."""
        self._now_seconds += seconds

    def pending_seconds(self) -> tuple[float, ...]:
        """How long each sleep and each wait with a limit still lasts, the shortest first."""
        left = (at - self._now_seconds for at, timer in self._timers if not timer.done())
        return tuple(sorted(left))

    async def run_tasks(self) -> None:
        """Let all tasks run until each waits for something; no time passes."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], object]) -> None:
        """Let tasks run and threads end until it holds; no time passes on this clock."""
        async with asyncio.timeout(LIMIT_SECONDS):
            while not holds():  # noqa: ASYNC110 (any condition, not one that we set)
                await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass; each sleep ends at its own moment, and tasks run before the next one.

        Work in threads takes real time: wait for its result with `until` instead.
        """
        end_seconds = self._now_seconds + seconds
        await self.run_tasks()
        while due := [timer for timer in self._left() if timer[0] <= end_seconds]:
            at_seconds, timer = min(due, key=lambda one: one[0])
            self._now_seconds = max(self._now_seconds, at_seconds)
            _end(timer)
            await self.run_tasks()
        self._now_seconds = end_seconds

    def _timer(self, seconds: float) -> asyncio.Future[None]:
        timer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timers = [*self._left(), (self._now_seconds + seconds, timer)]
        if seconds <= 0:
            timer.get_loop().call_soon(_end, timer)
        return timer

    def _left(self) -> list[tuple[float, asyncio.Future[None]]]:
        return [one for one in self._timers if not one[1].done()]


def _end(timer: asyncio.Future[None]) -> None:
    if not timer.done():
        timer.set_result(None)
