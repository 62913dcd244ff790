"""When the next request may be sent: not too many, and none while the server is overloaded."""

import random
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.rate_limit import TokenBucket

SPREAD_SECONDS: Final = 1.0
"""Requests that waited for an overloaded server are sent over so long a time, not all at once."""


@dataclass(slots=True)
class Throttle:
    """What all requests of one client wait for.

    API Priority and Fairness counts all requests of one user as one flow, so a refusal concerns
    reads and writes alike. A renewal of a Lease must not wait: give it a client of its own.
    Source: Kubernetes, "API Priority and Fairness", flow schemas `service-accounts`.

    Attributes:
        per_second: requests in the long run, open watches not counted; 0 for any number.
        burst: requests at once.
        heeds_overload: wait when the server asks for that. A renewal of a Lease must not: who waits
            loses the Lease, and tries again every 2 s at most anyway.
        clock: the machine's clock by default.
        jitter: the source of the jitter.
    """

    per_second: float = 0.0
    burst: int = 1
    heeds_overload: bool = True
    _: KW_ONLY
    clock: Clock = field(default_factory=SystemClock)
    jitter: random.Random = field(default_factory=random.Random)
    _bucket: TokenBucket | None = field(default=None, init=False)
    _paused_until: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        if self.per_second:
            self._bucket = TokenBucket(self.burst, self.per_second)

    async def wait(self, *, is_watch: bool = False) -> None:
        """Wait until a request may be sent."""
        if self._bucket is not None and not is_watch:
            wait_seconds = self._bucket.spend(1, self.clock.monotonic())
            if wait_seconds:
                await self.clock.sleep(wait_seconds)
        while (left_seconds := self._paused_until - self.clock.monotonic()) > 0:
            await self.clock.sleep(left_seconds + self.jitter.uniform(0.0, SPREAD_SECONDS))

    def pause(self, seconds: float) -> None:
        """Send nothing for so long, because the server asked for that."""
        if self.heeds_overload:
            self._paused_until = max(self._paused_until, self.clock.monotonic() + seconds)


def retry_after_seconds(header: str) -> float | None:
    """Parse Retry-After; the API server sends seconds, other servers may send a date."""
    return float(header) if header.isascii() and header.isdecimal() else None
