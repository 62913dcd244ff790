"""Which node is next: each key waits once and is never worked on twice at the same time."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, NoReturn

from numapin_client.errors import ClientError
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_operator.telemetry.states import QueueState

NODE_BACKOFF: Final = partial(Backoff, base_seconds=0.1, cap_seconds=30.0)

URGENT_IN_A_ROW: Final = 4
"""Urgent keys given out one after the other while another key waits."""

NEWS_SECONDS: Final = 1.0
"""How long after a failure a key waits at least although there is news, unless its back-off is
shorter: a key with a stream of news must not be tried again with each of them."""


NEVER_SORTED_OUT: Final = 64
"""So many times that count no more may be kept, besides as many as there are that count."""


@dataclass(slots=True)
class _Delay:
    """A key that failed; times are those of the queue's clock."""

    not_before: float
    due: float
    urgent: bool = False


class WorkQueue:
    """Keys that wait for a worker, or for their time.

    A key added several times before a worker takes it is given out once. A key added while a worker
    has it is given out again after `done` or `failed`. Urgent keys come before others, but every
    `URGENT_IN_A_ROW` + 1st key given out is another one, so that none waits for ever. Within both
    groups the order is first come, first served. The queue belongs to one event loop.
    """

    def __init__(
        self,
        make_backoff: Callable[[], Backoff] = NODE_BACKOFF,
        news_seconds: float = NEWS_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        """Start empty.

        Args:
            make_backoff: makes the back-off of one key, dropped when the key succeeds.
            news_seconds: see `NEWS_SECONDS`.
            clock: measures every time; the machine's by default.
        """
        self._make_backoff, self._news_seconds = make_backoff, news_seconds
        self._clock = clock or SystemClock()
        self._urgent: OrderedDict[str, float] = OrderedDict()
        self._others: OrderedDict[str, float] = OrderedDict()
        """Since when each key waits."""
        self._urgent_in_a_row = 0
        self._taken: set[str] = set()
        self._again: dict[str, bool] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._delayed: dict[str, _Delay] = {}
        self._times: dict[str, float] = {}
        """When each key is given out although nobody has added it by then."""
        self._due: list[tuple[float, str]] = []
        """A heap of all these times, and of some that count no more."""
        self._taking = asyncio.Lock()
        self._news = asyncio.Event()

    def state(self) -> QueueState:
        """How much waits, and how long the first key has waited; may be called in any thread."""
        since = [*self._urgent.values(), *self._others.values()]
        oldest = self._clock.monotonic() - min(since) if since else 0.0
        return QueueState(len(since), len(self._delayed), oldest)

    def add(self, key: str, *, urgent: bool = False, at: float | None = None) -> None:
        """Give `key` to a worker soon, or at a time.

        A key that is delayed after a failure waits until `NEWS_SECONDS` after that, and for as long
        as the server asked for. A key that waits already becomes urgent if `urgent` is set.

        Args:
            key: what a worker gets.
            urgent: whether it comes before others.
            at: when, by the clock's monotonic time. It replaces an earlier such time, and is
                forgotten when the key is given out for any reason.
        """
        if at is not None:
            self._times[key] = at
            self._push(at, key)
        elif key in self._taken:
            self._again[key] = urgent or self._again.get(key, False)
        elif delay := self._delayed.get(key):
            delay.urgent |= urgent
            if delay.not_before < delay.due:
                delay.due = delay.not_before
                self._push(delay.due, key)
        else:
            self._queue(key, urgent)

    async def take(self) -> str:
        """Wait for a key. No other worker gets it until `done` or `failed` is called with it.

        Each turn of the event loop gives out one key at most, so that other tasks get turns between
        the plans of two nodes, however many workers there are.
        """
        async with self._taking:
            await asyncio.sleep(0)
            self._queue_due()
            while not (self._urgent or self._others):
                self._news.clear()
                await self._clock.wait(self._news, self._next_due_seconds())
                self._queue_due()
            key = self._next()
        self._times.pop(key, None)
        self._taken.add(key)
        return key

    async def serve(
        self,
        step: Callable[[str], Awaitable[object]],
        failed: Callable[[str, ClientError, float], object],
        broken: Callable[[str, Exception], object],
        most_seconds: Callable[[ClientError], float] = lambda _: math.inf,
    ) -> NoReturn:
        """Work on key after key until cancelled; any number of tasks may do so.

        A key whose work is interrupted waits again. One that fails waits for its back-off.

        Args:
            step: works on one key.
            failed: called after an error of the API server, with the seconds until the next try.
            broken: called after any other error, which is a defect; must not raise.
            most_seconds: how long a key waits at most after an error of the API server.
        """
        while True:
            key = await self.take()
            try:
                await step(key)
            except asyncio.CancelledError:
                self.add(key)
                self.done(key)
                raise
            except ClientError as error:
                failed(key, error, self.failed(key, error.retry_after_seconds, most_seconds(error)))
            except Exception as error:  # noqa: BLE001 - one key must not stop the others
                self.failed(key)
                broken(key, error)
            else:
                self.done(key)

    def done(self, key: str) -> None:
        """The work on `key` succeeded; a key that was added meanwhile waits again at once."""
        self._backoffs.pop(key, None)
        self._taken.discard(key)
        if (urgent := self._again.pop(key, None)) is not None:
            self._queue(key, urgent)

    def failed(
        self,
        key: str,
        retry_after_seconds: float | None = None,
        most_seconds: float = math.inf,
    ) -> float:
        """The work on `key` failed: give it out again after its back-off.

        Args:
            key: what failed.
            retry_after_seconds: how long the server asked to wait; None if it did not.
            most_seconds: how long to wait at most, besides that.

        Returns:
            The delay in seconds; shorter if the key was added meanwhile, see `add`.
        """
        backoff = self._backoffs.setdefault(key, self._make_backoff())
        delay_seconds = backoff.next_seconds(retry_after_seconds, most_seconds)
        asked_seconds = retry_after_seconds or 0.0
        least_seconds = min(delay_seconds, max(asked_seconds, self._news_seconds))
        urgent = self._again.pop(key, None)
        if urgent is not None:
            delay_seconds = least_seconds
        self._taken.discard(key)
        now = self._clock.monotonic()
        due = now + delay_seconds
        self._delayed[key] = _Delay(now + least_seconds, due, bool(urgent))
        self._push(due, key)
        return delay_seconds

    def _push(self, due: float, key: str) -> None:
        """Remember a time; a worker that waits for a later one must wait again."""
        heappush(self._due, (due, key))
        if len(self._due) > 2 * (len(self._times) + len(self._delayed)) + NEVER_SORTED_OUT:
            self._due = list({one for one in self._due if self._counts(*one)})
            heapify(self._due)
        self._news.set()

    def _counts(self, due: float, key: str) -> bool:
        delay = self._delayed.get(key)
        return self._times.get(key) == due or (delay is not None and delay.due == due)

    def _next_due_seconds(self) -> float | None:
        return max(0.0, self._due[0][0] - self._clock.monotonic()) if self._due else None

    def _queue_due(self) -> None:
        """Have the keys wait for a worker whose time has come."""
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            due, key = heappop(self._due)
            if not self._counts(due, key):
                continue
            delay = self._delayed.get(key)
            if delay is not None and delay.due <= now:
                del self._delayed[key]
                self._queue(key, delay.urgent)
            elif self._times.get(key) == due:
                del self._times[key]
                self.add(key)

    def _queue(self, key: str, urgent: bool) -> None:
        now = self._clock.monotonic()
        if urgent:
            self._urgent.setdefault(key, self._others.pop(key, now))
        elif key not in self._urgent:
            self._others.setdefault(key, now)
        self._news.set()

    def _next(self) -> str:
        others_turn = not self._urgent or self._urgent_in_a_row >= URGENT_IN_A_ROW
        if self._others and others_turn:
            self._urgent_in_a_row = 0
            return self._others.popitem(last=False)[0]
        self._urgent_in_a_row += 1
        return self._urgent.popitem(last=False)[0]
