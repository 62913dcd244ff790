"""Wakes each node when a move there can go on."""

from collections.abc import Callable
from heapq import heappop, heappush

from numapin_daemon.clock import Clock
from numapin_daemon.worker import Worker


class MoveTimer:
    """Remembers when to plan which node again.

    It keeps nothing that a restarted operator would miss: the times are in the assignments.
    """

    def __init__(self, wake: Callable[[str], object], clock: Clock) -> None:
        """Wake nothing yet.

        Args:
            wake: called with each node whose time has come.
            clock: measures the times.
        """
        self._wake, self._clock = wake, clock
        self._due_of: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []
        self._worker = Worker("moves", self._work, clock=clock)

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._clock.now().timestamp()

    def set(self, name: str, at: float | None) -> None:
        """Wake a node at that time (see `now`) and at none set before; None for never."""
        if at is None:
            self._due_of.pop(name, None)
            return
        due = self._clock.monotonic() + max(0.0, at - self.now())
        self._due_of[name] = due
        heappush(self._due, (due, name))
        if self._due[0] == (due, name):
            self._worker.request()

    async def run(self) -> None:
        """Wake the nodes whose time has come, until cancelled."""
        await self._worker.run()

    async def _work(self) -> float | None:
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            due, name = heappop(self._due)
            if self._due_of.get(name) == due:
                del self._due_of[name]
                self._wake(name)
        return self._due[0][0] - now if self._due else None
