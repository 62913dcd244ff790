"""How long a Lease lasts; a Lease as last seen, and whether its holder still renews it."""

import math
from dataclasses import dataclass
from typing import Final

from numapin_client.resources import Json
from numapin_daemon.clock import Clock

JITTER: Final = 1.2
"""Spreads the attempts of several operators. Source: client-go `leaderelection.JitterFactor`."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The durations of the election; the defaults are those of Kubernetes' own components.

    Attributes:
        lease_seconds: a Lease that was not renewed for so long may be taken.
        renew_deadline_seconds: a leader that cannot renew for so long stops leading.
        retry_seconds: between two attempts to take or renew.

    Raises:
        ValueError: another operator could start to lead before the leader stops.
    """

    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline_seconds > self.retry_seconds * JITTER:
            raise ValueError(
                f"{self}: lease must exceed renew deadline, and that {JITTER} times retry"
            )


DEFAULT_TIMING: Final = LeaseTiming()


class ObservedLease:
    """A Lease as last seen. The times in it are another machine's: they are not compared with ours.

    Attributes:
        body: the Lease; None until it was seen.
    """

    def __init__(self, clock: Clock, lease_seconds: float, most_seconds: float = math.inf) -> None:
        """Have seen nothing yet.

        Args:
            clock: measures how long the Lease has not changed.
            lease_seconds: how long a Lease lasts that does not say so.
            most_seconds: how long it lasts at most, whatever it says.
        """
        self.body: Json | None = None
        self._clock, self._lease_seconds, self._most_seconds = clock, lease_seconds, most_seconds
        self._changed_at = 0.0

    @property
    def holder(self) -> str:
        """Who holds it, expired or not; empty if it is free or was not seen."""
        spec = (self.body or {}).get("spec") or {}
        return str(spec.get("holderIdentity") or "")

    def observe(self, lease: Json) -> None:
        """Remember the Lease, and when by our own clock it last changed."""
        if self.body is None or _version(self.body) != _version(lease):
            self._changed_at = self._clock.monotonic()
        self.body = lease

    def expired(self) -> bool:
        """Whether it may be taken: it is free, or was not renewed for its duration."""
        spec = (self.body or {}).get("spec") or {}
        lasts_seconds = float(spec.get("leaseDurationSeconds") or self._lease_seconds)
        unchanged_seconds = self._clock.monotonic() - self._changed_at
        return not self.holder or unchanged_seconds >= min(lasts_seconds, self._most_seconds)


def _version(lease: Json) -> str:
    return str(lease["metadata"]["resourceVersion"])
