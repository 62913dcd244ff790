"""Takes in one event after the other, so that a burst of them does not block the event loop."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.slices import Slices
from numapin_daemon.worker import Worker

_log = logging.getLogger(__name__)


class Inbox:
    """Events in the order in which they came.

    kopf reports every policy again after it has listed them; decoding thousands of them in one step
    would keep the loop from everything else.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._events: deque[Callable[[], object]] = deque()
        self._worker = Worker("events", self._take_in, clock=self._clock)

    def put(self, take_in: Callable[[Mapping[str, Any]], object], body: Mapping[str, Any]) -> None:
        """Have `take_in` called with an object; returns at once."""
        self._events.append(partial(take_in, body))
        self._worker.request()

    async def run(self) -> None:
        """Take in what comes, until cancelled; an error concerns one event only."""
        await self._worker.run()

    async def _take_in(self) -> None:
        slices = Slices(self._clock)
        while self._events:
            take_in = self._events.popleft()
            try:
                take_in()
            except Exception:  # noqa: BLE001 - one object must not stop the others
                _log.exception("cannot take in an event")
            await slices.rest()
