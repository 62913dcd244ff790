"""What an informer is given: how long it waits, and what its owner knows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from numapin_client.cache.sieve import Sieve
from numapin_client.cache.watch import WatchTiming
from numapin_client.client import CHUNK_LIMIT
from numapin_client.errors import ClientError, ForbiddenError, NotFoundError
from numapin_client.resources import Json
from numapin_daemon.clock import Clock, SystemClock

BATCH: Final = 20
"""Objects that are taken in without a pause, and fewer if they take longer than a slice."""

CHUNK_GROWTH: Final = (1, 5, 25)
"""The size of the chunks as a list expires again and again. Etcd keeps 5 minutes of history."""

SHORT_WATCHES: Final = 2
"""After how many short watches in vain `Informer.catch_up` lists."""

SHORT_WATCH_SECONDS: Final = 3.0
SHORT_GRACE_SECONDS: Final = 2.0
"""A short watch gets its bookmark after a second; see `Informer.catch_up`."""


@dataclass(frozen=True, slots=True)
class InformerTiming:
    """How long an informer waits, in seconds, and what it leaves out.

    Attributes:
        session_seconds: the shortest and the longest time after which the server ends a watch, so
            that watches spread over the API servers. Source: client-go `reflector`,
            minWatchTimeout. A connection that stays open but no longer delivers is noticed after
            a session and its grace, so a short session finds it soon, for one request a session.
        grace_seconds: how much longer than its session a watch may be silent before it is given
            up. If nothing changes the server sends nothing, not even bookmarks, unless etcd
            reports its progress. (The kernel notices a dead peer earlier.)
        backoff_base_seconds: upper bound of the first wait after a failure.
        backoff_cap_seconds: upper bound of all waits that the server does not ask for.
        refused_cap_seconds: the same after an answer that the resource is unknown or forbidden,
            which repeats itself until somebody changes the cluster.
        chunk_limit: objects in one answer to a list.
        very_short_seconds: a watch that ends sooner without an event is not started again at
            once, as in client-go.
        clock: measures and waits; the machine's clock by default.
        sieve: which objects are copied; None copies all.
    """

    session_seconds: tuple[float, float] = (300.0, 600.0)
    grace_seconds: float = 30.0
    backoff_base_seconds: float = 0.5
    backoff_cap_seconds: float = 30.0
    refused_cap_seconds: float = 30.0
    chunk_limit: int = CHUNK_LIMIT
    very_short_seconds: float = 1.0
    clock: Clock = field(default_factory=SystemClock)
    sieve: Sieve | None = None

    def watch(self, jitter: Random, *, is_short: bool) -> WatchTiming:
        """How long the next watch lasts."""
        session_seconds, grace_seconds = SHORT_WATCH_SECONDS, SHORT_GRACE_SECONDS
        if not is_short:
            session_seconds = jitter.uniform(*self.session_seconds)
            grace_seconds = self.grace_seconds
        return WatchTiming(session_seconds, session_seconds + grace_seconds, self.sieve)

    def takes(self, body: Json) -> bool:
        """Whether an object is copied."""
        return self.sieve is None or self.sieve.takes(body)

    def most_seconds(self, error: ClientError) -> float:
        """The upper bound of the wait after a failure."""
        is_refused = isinstance(error, (ForbiddenError, NotFoundError))
        return self.refused_cap_seconds if is_refused else self.backoff_cap_seconds


DEFAULT_TIMING: Final = InformerTiming()


def _nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """For an owner that also takes in the answers to its own writes of the same objects.

    None of them may raise.

    Attributes:
        seen: the newest resourceVersion that the owner knows; 0 if none.
        start_over: called before a list of a server that has returned to an older state, as after a
            restore of etcd: objects come that are older than those that are known.
        listed: called with the resourceVersion of a list, once `items` is what it contains.
        failed: called with each failure of the server or of the connection, before it is retried.
    """

    seen: Callable[[], int] = int
    start_over: Callable[[], object] = _nothing
    listed: Callable[[str], object] = _nothing
    failed: Callable[[ClientError], object] = _nothing
