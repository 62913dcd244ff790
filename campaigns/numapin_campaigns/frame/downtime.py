"""When a part was away because a campaign had hit it. Does no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Downtime:
    """When a part was down: from just before it was killed until it was ready again.

    `stopped`: it was not killed, but stopped (SIGSTOP).
    """

    part: str
    killed_at: float
    ready_at: float
    stopped: bool = False


def noticed_after(downtimes: Iterable[Downtime], noticed: Iterable[float]) -> list[float | None]:
    """For each time that the enforcer was stopped: seconds until the standby noticed, or None."""
    times = list(noticed)
    return [
        next((at - one.killed_at for at in times if one.killed_at <= at <= one.ready_at), None)
        for one in downtimes
        if one.stopped
    ]


def unnoticed(noticed_seconds: Iterable[float | None]) -> list[str]:
    """A problem for each time that the standby did not notice a stopped enforcer."""
    return [
        f"the standby did not notice stop {number} of the enforcer"
        for number, seconds in enumerate(noticed_seconds, 1)
        if seconds is None
    ]
