"""Divide long work in an event loop into slices, between which other tasks get a turn."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock

SLICE_SECONDS: Final = 0.005


@dataclass(slots=True)
class Slices:
    """Pauses work that has lasted for a slice of time.

    The caller calls `rest` between two pieces of its work, each much shorter than a slice.

    Attributes:
        clock: the machine's clock by default.
        slice_seconds: how long to work without a pause.
    """

    clock: Clock = field(default_factory=SystemClock)
    slice_seconds: float = SLICE_SECONDS
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock.monotonic()

    def over(self) -> bool:
        """Whether the slice is used up."""
        return self.clock.monotonic() - self._began >= self.slice_seconds

    async def rest(self) -> None:
        """Give other tasks a turn, if the slice is used up."""
        if self.over():
            await asyncio.sleep(0)
            self._began = self.clock.monotonic()
