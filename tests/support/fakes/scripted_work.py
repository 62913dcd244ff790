"""Work of a `Worker` that ends as a script says, and waits that a test knows."""

import random
from collections import deque

from support.fakes.manual_clock import ManualClock


class BusyError(Exception):
    """The outside world is busy, and may say for how long."""

    def __init__(self, what: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(what)
        self.retry_after_seconds = retry_after_seconds


class DownError(Exception):
    """The outside world is away."""


class LongestWaits(random.Random):
    """Makes every wait as long as the back-off allows, so that a test knows it."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Work:
    """Notes when it ran; ends as its script says, and well once that is over."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.ran_at: list[float] = []
        self.script: deque[Exception | float | None] = deque()
        self.lasts_seconds = 0.0

    async def __call__(self) -> float | None:
        self.ran_at.append(self._clock.monotonic() - 1000)
        if self.lasts_seconds:
            await self._clock.sleep(self.lasts_seconds)
        outcome = self.script.popleft() if self.script else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
