"""Looks at exclusive CPUs once a minute, for the status."""

import asyncio
from collections.abc import Callable
from typing import Final

from numapin_api.schema.plain import Disturbance
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.telemetry.noise.look import Looker
from numapin_enforcer.telemetry.noise.summary import Summary

LOOK_SECONDS: Final = 60.0


class NoiseWatch:
    """Keeps what was found; `run` looks, and wakes the loop when that changes."""

    def __init__(
        self, looker: Looker, wake: Callable[[], object], clock: Clock | None = None
    ) -> None:
        self._looker, self._wake, self._clock = looker, wake, clock or SystemClock()
        self._last, self._summary = Converged(), Summary()
        self._looked_seconds: float | None = None
        self._worker = Worker("noise", self._look, clock=self._clock)

    @property
    def found(self) -> tuple[Disturbance, ...]:
        """What comes to exclusive CPUs again and again."""
        return self._summary.found

    def passed(self, done: Pass, _: object) -> None:
        """A pass has ended."""
        self._last = done.result

    async def run(self) -> None:
        """Look until cancelled."""
        self._worker.request()
        await self._worker.run()

    async def _look(self) -> float:
        """Look in a thread: it may take longer than the loop may stand still.

        Returns:
            The seconds until the next look.
        """
        before, last = self.found, self._last
        now_seconds = self._clock.monotonic()
        since_seconds = now_seconds - (self._looked_seconds or now_seconds)
        look = await asyncio.to_thread(self._looker.look, last)
        self._summary.note(look, since_seconds)
        self._looked_seconds = now_seconds
        if self.found != before:
            self._wake()
        return LOOK_SECONDS
