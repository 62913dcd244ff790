"""Since when watches have had no contact with the API server."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from numapin_client.cache.informer import Informer
from numapin_client.errors import ConnectionFailedError
from numapin_client.transport.library_session import NO_ANSWER
from numapin_daemon.clock import Clock

GRACE_SECONDS: Final = 10.0
"""A watch that has had no contact for less is only connecting again."""


LONGEST_BACKOFF_SECONDS: Final = 3.0
"""How long what follows the API server waits before it tries again, at most.

Whatever is waited for when the server returns is added to the outage. The few requests of each
replica, with jitter, are nothing to a server that recovers: there are some six parts, where each
node has an enforcer. What the server asks for by `Retry-After` is waited for in any case.
"""


def longest_backoff_seconds(error: Exception | None) -> float:
    """How long to wait at most after an error; a request without an answer burdened nobody."""
    is_away = isinstance(error, ConnectionFailedError)
    return LONGEST_BACKOFF_SECONDS if is_away else math.inf


class Outage(NamedTuple):
    """Why there is no contact, and since when on a monotonic clock."""

    since: float
    why: str


class WatchContact:
    """The contact of several watches; `report` may be called in any thread."""

    def __init__(self, watches: Iterable[str], clock: Clock) -> None:
        """Args: `watches` are names; none of them has contact yet."""
        self._clock = clock
        now = clock.monotonic()
        self._outages = {name: Outage(now, "not connected yet") for name in watches}

    def report(self, watch: str, problem: str) -> None:
        """Take in what happened to a watch; an empty problem means contact.

        A request without an answer says less than how the last one failed.
        """
        outages = dict(self._outages)
        before = outages.pop(watch, None)
        if problem and before:
            outages[watch] = before if problem == NO_ANSWER else before._replace(why=problem)
        elif problem:
            outages[watch] = Outage(self._clock.monotonic(), problem)
        self._outages = outages

    @property
    def outages(self) -> Mapping[str, Outage]:
        """The watches without contact."""
        return self._outages


def describe_outages(outages: Mapping[str, Outage], now: float) -> dict[str, str]:
    """What to say of outages that last; of short ones nothing."""
    return {
        name: f"out of date for {now - outage.since:.0f} s: {outage.why}"
        for name, outage in outages.items()
        if now - outage.since >= GRACE_SECONDS
    }


def outages_of(informers: Mapping[str, Informer[Any]]) -> tuple[dict[str, Outage], dict[str, str]]:
    """What the API server does not deliver any more, and what it has never listed, with reasons."""
    outages: dict[str, Outage] = {}
    missing: dict[str, str] = {}
    for name, informer in informers.items():
        why = str(informer.problem or "no watch yet")
        if not informer.synced.is_set():
            missing[name] = f"not listed yet: {why}"
        elif informer.behind_since is not None:
            outages[name] = Outage(informer.behind_since, why)
    return outages, missing
