"""Which node is next: each key waits once and is never worked on twice at the same time."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from numapin_daemon.backoff import Backoff

NODE_BACKOFF: Final = partial(Backoff, base_seconds=0.1, cap_seconds=30.0)


class WorkQueue:
    """Keys that wait for a worker.

    A key added several times before a worker takes it is given out once. A key added while a worker
    has it is given out again after `done` or `failed`. Order is first come, first served. The queue
    belongs to one event loop.
    """

    def __init__(self, make_backoff: Callable[[], Backoff] = NODE_BACKOFF) -> None:
        """Args: `make_backoff` makes the back-off of one key, dropped when the key succeeds."""
        self._make_backoff = make_backoff
        self._waiting: deque[str] = deque()
        self._queued: set[str] = set()
        self._taken: set[str] = set()
        self._again: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._delayed: dict[str, asyncio.TimerHandle] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()

    def add(self, key: str) -> None:
        """Give `key` to a worker soon, even if it is delayed after a failure."""
        if delayed := self._delayed.pop(key, None):
            delayed.cancel()
        if key in self._taken:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.append(key)
            self._wake_one()

    async def take(self) -> str:
        """Wait for a key. No other worker gets it until `done` or `failed` is called with it."""
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
        """The work on `key` succeeded; a key that was added meanwhile waits again at once."""
        self._backoffs.pop(key, None)
        self._put_back(key)

    def failed(self, key: str) -> float:
        """The work on `key` failed: give it out again after its back-off.

        Returns:
            The delay in seconds; 0 if the key was added meanwhile and waits again at once.
        """
        delay = self._backoffs.setdefault(key, self._make_backoff()).next_seconds()
        if self._put_back(key):
            return 0.0
        loop = asyncio.get_running_loop()
        self._delayed[key] = loop.call_later(delay, self.add, key)
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
