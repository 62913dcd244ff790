"""Events of CpuPolicies from kopf; no other module touches kopf.

kopf runs in a thread with an event loop of its own, because its end cancels every task of its loop.
It is used for its events alone: it remembers nothing in objects and never writes to them.

kopf imports the `kubernetes` package where that is installed; we let it, because the 10 MiB are
little beside the 400 MiB that an operator of 5,000 nodes needs.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, NoReturn

import kopf

from numapin_api import names
from numapin_client.login.credentials import Login
from numapin_client.resources import CPU_POLICIES
from numapin_client.transport.library_session import Observer, open_session
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.kept_error import without_frames
from numapin_operator.observe.contact import LONGEST_BACKOFF_SECONDS, WatchContact, describe_outages

CHATTY_LOGGERS: Final = ("kopf",)
"""Loggers that log each event and each login, and attach kopf's whole settings to each line."""

WORKER_IDLE_SECONDS: Final = 0.02
"""How long kopf keeps a task for an object after its last event."""

LIST_CHUNK: Final = 50
"""Objects in one answer to kopf's lists: no other thread runs while an answer is parsed."""

STOP_SECONDS: Final = 2.0

SETTLED_SECONDS: Final = 30.0
"""If kopf ran for longer, its end is the first of a row."""

IDENTITY: Final[Any] = "numapin-operator"
"""kopf's name for this operator, which nobody sees without its peering. Without one it takes the
name of the user, and fails where /etc/passwd has no entry for the UID, as in a container.
Source: kopf `peering.detect_own_id`."""

_log = logging.getLogger(__name__)

SESSION_SECONDS: Final = 40
INACTIVE_SECONDS: Final = 50.0
"""A watch ends after the first and is given up after the second without an event, so that one that
no longer delivers is noticed. The API server sends a bookmark 2 s before the end of a watch, and
kopf starts the next one there. Source: apiserver `cacheWatcher.nextBookmarkTime`."""

ObjectHandler = Callable[[Mapping[str, Any]], None]


def _ignore() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class EventHandlers:
    """What is called for each event, always in the operator's own event loop.

    Attributes:
        put: with a policy that exists.
        drop: with the last state of a policy that was deleted.
        listed: kopf has listed the policies, at its start or because its watch expired.
        connected: the watch has been accepted.
    """

    put: ObjectHandler
    drop: ObjectHandler
    listed: Callable[[], object]
    connected: Callable[[], object] = _ignore


class KopfSource:
    """Runs kopf, and starts it again whenever it ends.

    Attributes:
        problem: why kopf ended; None while it runs.
    """

    def __init__(self, login: Login, handlers: EventHandlers, clock: Clock | None = None) -> None:
        """Start nothing yet.

        Args:
            login: how kopf logs in to the API server.
            handlers: what takes the events.
            clock: the machine's clock by default.
        """
        self._login, self._handlers = login, handlers
        self._clock = clock or SystemClock()
        self.problem: BaseException | None = None
        self._contact = WatchContact((CPU_POLICIES.plural,), self._clock)
        self._stop: Future[None] = Future()

    async def run(self) -> NoReturn:
        """Run kopf until cancelled.

        Policies must be served by now: kopf does not notice a CRD that is installed later. It ends
        when it gets an answer that it does not expect, such as an error amid a watch. It lists
        everything when it starts, so its absence costs only time.
        """
        registry = build_registry(
            self._login, self._handlers, self._contact, asyncio.get_running_loop()
        )
        backoff = Backoff(cap_seconds=LONGEST_BACKOFF_SECONDS)
        while True:
            started_at = self._clock.monotonic()
            self._stop = Future()
            error = await _run_once(registry, self._stop)
            if self._clock.monotonic() - started_at > SETTLED_SECONDS:
                backoff.reset()
            wait_seconds = backoff.next_seconds()
            _log.warning(
                "kopf ended, it will be started again",
                extra={"error": repr(error), "again_in_seconds": round(wait_seconds, 1)},
            )
            self.problem = None if error is None else without_frames(error)
            await self._clock.sleep(wait_seconds)
            self.problem = None

    def list_again(self) -> None:
        """Start kopf again, which lists everything."""
        _set(self._stop)

    def missing(self) -> dict[str, str]:
        """What is not ready, to why; for the readiness probe."""
        missing = describe_outages(self._contact.outages, self._clock.monotonic())
        if self.problem:
            missing["kopf"] = f"ended, starts again: {self.problem!r}"
        return missing


def build_registry(
    login: Login,
    handlers: EventHandlers,
    contact: WatchContact,
    loop: asyncio.AbstractEventLoop,
) -> kopf.OperatorRegistry:
    """A fresh registry with a handler for policies; `handlers` are called in `loop`."""
    registry = kopf.OperatorRegistry()
    observe = _request_observer(handlers, contact, loop)

    async def log_in(**_: Any) -> kopf.AiohttpSession:
        session = open_session(login, observe)
        return kopf.AiohttpSession(server=login.server, aiohttp_session=session)

    kopf.on.login(registry=registry, id="log-in")(log_in)
    plural = names.CPU_POLICY_PLURAL
    on_event = kopf.on.event(names.GROUP, names.VERSION, plural, registry=registry, id=plural)
    on_event(_event_handler(handlers, loop))
    return registry


def _request_observer(
    handlers: EventHandlers, contact: WatchContact, loop: asyncio.AbstractEventLoop
) -> Observer:
    """What takes in kopf's requests, in kopf's thread."""

    def observe(path: str, query: Mapping[str, str], problem: str | None) -> None:
        if path != CPU_POLICIES.collection_path():
            return
        is_watch = "watch" in query
        if problem or is_watch:
            contact.report(CPU_POLICIES.plural, problem or "")
        if not problem:
            loop.call_soon_threadsafe(handlers.connected if is_watch else handlers.listed)

    return observe


def _event_handler(handlers: EventHandlers, loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    """What takes in kopf's events, in kopf's thread."""

    async def handle(event: kopf.RawEvent, **_: Any) -> None:
        handler = handlers.drop if event["type"] == "DELETED" else handlers.put
        loop.call_soon_threadsafe(handler, event["object"])

    return handle


class EndlessBackoffs:
    """Delays in seconds between attempts to reach the API server, without an end."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.1, 0.2, 0.5, 1, 2)
        yield from repeat(LONGEST_BACKOFF_SECONDS)


class NoDiffBase(kopf.DiffBaseStorage):
    """Stores nothing in objects: we compare whole states ourselves."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Return nothing to compare, which spares kopf a deep copy of every object."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Find nothing."""

    def store(self, **_: Any) -> None:
        """Store nothing."""


class NoProgress(kopf.ProgressStorage):
    """Stores no progress in objects: our handlers end at once."""

    def fetch(self, **_: Any) -> None:
        """Find nothing."""

    def store(self, **_: Any) -> None:
        """Store nothing."""

    def purge(self, **_: Any) -> None:
        """Remove nothing."""

    def touch(self, **_: Any) -> None:
        """Do not touch the object."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return it unchanged: nothing of ours is in it."""
        return essence


def build_settings() -> kopf.OperatorSettings:
    """Settings that make kopf a reader: it never writes to an object and never gives up."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.queueing.idle_timeout = WORKER_IDLE_SECONDS
    settings.queueing.exit_timeout = STOP_SECONDS
    settings.watching.server_timeout = SESSION_SECONDS
    settings.watching.inactivity_timeout = INACTIVE_SECONDS
    settings.watching.chunk_size = LIST_CHUNK
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.process.ultimate_exiting_timeout = None
    return settings


async def _run_once(registry: kopf.OperatorRegistry, stop: "Future[None]") -> BaseException | None:
    """Run kopf in a thread until it ends, or until `stop` is set; return why it ended."""
    thread = asyncio.create_task(
        asyncio.to_thread(_run_in_thread, registry, stop), name="kopf thread"
    )
    try:
        await asyncio.wait((thread,))
    finally:
        _set(stop)
        await asyncio.wait((thread,))
    return thread.exception()


def _run_in_thread(registry: kopf.OperatorRegistry, stop: "Future[None]") -> None:
    # It warns that signals do not reach a thread; the operator takes them itself.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    with suppress(asyncio.CancelledError):
        asyncio.run(_operate(registry, stop))


async def _operate(registry: kopf.OperatorRegistry, stop: "Future[None]") -> None:
    try:
        await kopf.operator(
            registry=registry,
            settings=build_settings(),
            identity=IDENTITY,
            clusterwide=True,
            stop_flag=stop,
        )
    finally:
        # A thread of the loop's executor waits for the flag, and the loop waits for the thread.
        _set(stop)


def _set(flag: "Future[None]") -> None:
    if not flag.done():
        flag.set_result(None)
