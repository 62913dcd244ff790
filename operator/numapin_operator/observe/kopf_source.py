"""Run kopf beside us: its settings, its session to the API server, its own thread and loop."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, NoReturn

import aiohttp

from numapin_client.login.credentials import Login
from numapin_daemon.backoff import Backoff
from numapin_operator.observe.kopf_import import kopf

WORKER_IDLE_SECONDS: Final = 0.02
"""kopf keeps a task for each object for this long after its last event."""

LIST_CHUNK: Final = 500
STOP_SECONDS: Final = 2.0

_log = logging.getLogger(__name__)

Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]


class EndlessBackoffs:
    """Delays in seconds between attempts to reach the API server, without an end."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.1, 0.2, 0.5, 1, 2, 5, 10)
        yield from repeat(15.0)


class NoDiffBase(kopf.DiffBaseStorage):
    """Remembers nothing in objects: we compare whole states ourselves."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing is worth comparing; this also spares kopf a deep copy of every object."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Nothing was remembered."""

    def store(self, **_: Any) -> None:
        """Remember nothing."""


class NoProgress(kopf.ProgressStorage):
    """Remembers no progress in objects: our handlers end at once."""

    def fetch(self, **_: Any) -> None:
        """Nothing was remembered."""

    def store(self, **_: Any) -> None:
        """Remember nothing."""

    def purge(self, **_: Any) -> None:
        """Nothing to forget."""

    def touch(self, **_: Any) -> None:
        """Leave objects alone."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Nothing of ours is in there."""
        return essence


def build_settings() -> kopf.OperatorSettings:
    """Settings that make kopf a reader: it never writes to an object and never gives up."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.queueing.idle_timeout = WORKER_IDLE_SECONDS
    settings.queueing.exit_timeout = STOP_SECONDS
    settings.watching.chunk_size = LIST_CHUNK
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.process.ultimate_exiting_timeout = None
    return settings


def open_session(
    login: Login, collections: AbstractSet[str], listed: Callable[[], object]
) -> kopf.AiohttpSession:
    """A session for kopf that logs in as we do and tells when a whole list was read.

    kopf lists when it starts and whenever its watch has expired. What was deleted in between it
    never tells, so whoever keeps state must then compare.

    Args:
        login: how to be known to the API server.
        collections: URL paths whose lists matter.
        listed: called after the API server began to answer such a list.
    """

    async def known(request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        if login.tls_server_name is not None:
            request.server_hostname = login.tls_server_name
        response = await _send(request, handler, login)
        if response.status == 401:
            response.close()
            for credential in login.credentials:
                await credential.renew()
            response = await _send(request, handler, login)
        if request.url.path in collections and "watch" not in request.url.query:
            listed()
        return response

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=login.tls or True),
        middlewares=(known,),
        proxy=login.proxy,
    )
    return kopf.AiohttpSession(server=login.server, aiohttp_session=session)


async def _send(
    request: aiohttp.ClientRequest, handler: Handler, login: Login
) -> aiohttp.ClientResponse:
    for credential in login.credentials:
        if header := await credential.authorization():
            request.headers["Authorization"] = header
            break
    return await handler(request)


async def serve(
    registry: kopf.OperatorRegistry,
    settings: kopf.OperatorSettings,
    told: Callable[[BaseException | None], object] = lambda _: None,
) -> NoReturn:
    """Run kopf until cancelled, and start it again whenever it ends.

    It ends for answers that it does not expect, such as an error amid a watch. When it starts it
    lists everything, so nothing is lost by its absence but time.

    Args:
        registry: who is told of which events.
        settings: see `build_settings`.
        told: called with why it ended, and with None when it starts again.
    """
    backoff = Backoff()
    while True:
        started_at = time.monotonic()
        error = await _serve_once(registry, settings)
        if time.monotonic() - started_at > backoff.cap_seconds:
            backoff.reset()
        wait_seconds = backoff.next_seconds()
        _log.warning(
            "kopf ended, starting it again",
            extra={"error": repr(error), "again_in_seconds": round(wait_seconds, 1)},
        )
        told(error)
        await asyncio.sleep(wait_seconds)
        told(None)


async def _serve_once(
    registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings
) -> BaseException | None:
    """Run kopf in a thread, and say why it ended.

    Its end cancels every task of its event loop, so that loop is not ours.
    """
    stop: Future[None] = Future()
    running = asyncio.create_task(
        asyncio.to_thread(_run, registry, settings, stop), name="kopf thread"
    )
    try:
        await asyncio.wait((running,))
    finally:
        _raise_flag(stop)
        await asyncio.wait((running,))
    return running.exception()


def _run(
    registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, stop: "Future[None]"
) -> None:
    # It warns that signals do not reach a thread; they are ours to take.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    with suppress(asyncio.CancelledError):
        asyncio.run(_operate(registry, settings, stop))


async def _operate(
    registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, stop: "Future[None]"
) -> None:
    try:
        await kopf.operator(registry=registry, settings=settings, clusterwide=True, stop_flag=stop)
    finally:
        # A thread of the loop's executor waits for the flag, and the loop waits for the thread.
        _raise_flag(stop)


def _raise_flag(flag: "Future[None]") -> None:
    if not flag.done():
        flag.set_result(None)
