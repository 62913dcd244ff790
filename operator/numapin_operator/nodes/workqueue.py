"""Which node is next: keys waiting for a worker, each once, never worked on twice at a time."""

import asyncio
import random
from collections import deque
from typing import Final

FIRST_DELAY_SECONDS: Final = 0.1
LONGEST_DELAY_SECONDS: Final = 30.0


class WorkQueue:
    """Keys waiting for work.

    A key added several times before a worker takes it is given out once; one added while a worker
    has it is given out again after `done`. Order is first come, first served. All of it belongs to
    one event loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._queued: set[str] = set()
        self._taken: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._queued) + len(self._taken)

    @property
    def idle(self) -> bool:
        """Whether nothing waits, is worked on or stands back after a failure."""
        return not (self._queued or self._taken or self._later)

    def add(self, key: str) -> None:
        """Let a worker look at `key` soon; a failure's delay does not hold back fresh news."""
        if later := self._later.pop(key, None):
            later.cancel()
        if key in self._taken:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.append(key)
            self._wake_one()

    async def take(self) -> str:
        """Wait for a key; nobody else gets it until `done` or `failed` is called with it."""
        while not self._waiting:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake_one()
                raise
        key = self._waiting.popleft()
        self._queued.discard(key)
        self._taken.add(key)
        return key

    def done(self, key: str) -> None:
        """The work on `key` succeeded; it starts again at once if it was added meanwhile."""
        self._failures.pop(key, None)
        self._put_back(key)

    def failed(self, key: str) -> float:
        """The work on `key` failed: give it out again later, each time after a longer delay.

        Returns:
            The delay in seconds, spread at random so that many failures do not come back at once.
        """
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        ceiling = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(count, 16))
        delay = ceiling * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing
        if self._put_back(key):
            return 0.0
        loop = asyncio.get_running_loop()
        self._later[key] = loop.call_later(delay, self.add, key)
        return delay

    def _put_back(self, key: str) -> bool:
        self._taken.discard(key)
        if key not in self._again:
            return False
        self._again.discard(key)
        self.add(key)
        return True

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
