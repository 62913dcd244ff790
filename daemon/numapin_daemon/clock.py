"""The clock and the waits, behind an interface that tests can replace."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time, and waiting for it to pass.

    `SystemClock` is the real one; tests use `ManualClock` of tests/support/fakes.
    """

    def monotonic(self) -> float:
        """Seconds on a clock that only goes forward; only differences have a meaning."""
        ...

    def now(self) -> datetime:
        """The date and time, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        ...

    async def wait(self, event: asyncio.Event, timeout_seconds: float | None = None) -> bool:
        """Wait until `event` is set, for `timeout_seconds` at most; None waits without a limit.

        Returns:
            Whether the event is set. It stays set.
        """
        ...

    def unix_ns(self, at_seconds: float) -> int:
        """A moment of the monotonic time as nanoseconds since 1970, by the date and time of now."""
        return int((self.now().timestamp() - self.monotonic() + at_seconds) * 1e9)

    def now_text(self, *, microseconds: bool = False) -> str:
        """The date and time as Kubernetes writes it: RFC 3339, UTC.

        Source: apimachinery `metav1.Time` (whole seconds), `metav1.MicroTime` (microseconds).
        """
        form = "%Y-%m-%dT%H:%M:%S.%fZ" if microseconds else "%Y-%m-%dT%H:%M:%SZ"
        return self.now().strftime(form)


class SystemClock(Clock):
    """The machine's clock and the running event loop's timers."""

    def monotonic(self) -> float:
        """Source: `time.monotonic`."""
        return time.monotonic()

    def now(self) -> datetime:
        """The machine's date and time, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, timeout_seconds: float | None = None) -> bool:
        """Wait for `event`; see `Clock.wait`."""
        try:
            async with asyncio.timeout(timeout_seconds):
                return await event.wait()
        except TimeoutError:
            return event.is_set()  # it may have been set in the moment in which the time was over
