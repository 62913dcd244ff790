"""/healthz (no restart is needed) and /readyz (nothing is missing) for the kubelet's probes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Final

from aiohttp import web

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.options import Address

NO_PASSES: Final = "first pass"
"""What is missing on /readyz until a loop's first pass has ended."""


class AddressError(Exception):
    """The address of the probes is in use, or it does not belong to this machine."""

    def __init__(self, address: Address, error: OSError) -> None:
        super().__init__(
            f"cannot listen on {address}: {error.strerror or error}; choose another address with "
            "--health-address"
        )


def _nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Health:
    """What the probes answer; each function is called for each request, in any thread.

    Attributes:
        missing: what is not ready yet, with the reason of each; if empty, the daemon is ready.
        fatal: why a restart is needed; empty if none is.
        role: what a ready daemon does, such as "standing by"; may be empty.
    """

    missing: Callable[[], Mapping[str, str]]
    fatal: Callable[[], str] = _nothing
    role: Callable[[], str] = _nothing


@dataclass(slots=True)
class LoopHealth:
    """The health of a loop that must complete a pass from time to time.

    Attributes:
        stale_after_seconds: if no pass has ended for longer, a restart is needed.
        clock: the machine's clock by default.
        outdated: why a restart is needed; set by the loop, empty if none is.
    """

    stale_after_seconds: float
    clock: Clock = field(default_factory=SystemClock)
    outdated: str = ""
    _missing: Mapping[str, str] = field(init=False)
    _passed_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.passed({NO_PASSES: "not ended yet"})

    def passed(self, missing: Mapping[str, str]) -> None:
        """Record the end of a pass; `missing` is as in `Health`."""
        self._passed_at = self.clock.monotonic()
        self._missing = dict(missing)

    def health(self) -> Health:
        """What the probes answer."""
        return Health(missing=lambda: self._missing, fatal=self._fatal)

    def _fatal(self) -> str:
        idle_seconds = self.clock.monotonic() - self._passed_at
        if idle_seconds > self.stale_after_seconds:
            return f"the last pass ended {idle_seconds:.0f} s ago"
        return self.outdated


@asynccontextmanager
async def serve_probes(health: Health, address: Address) -> AsyncIterator[Address]:
    """Answer the probes for the duration of the context.

    The kubelet reads the status code, people read the body. A thread of its own answers, so that
    /healthz can say that the caller's event loop stands still; the functions of `health` are called
    in that thread.

    Yields:
        The address, with the port that the kernel chose if 0 was given.

    Raises:
        AddressError: the address is in use, or not this machine's.
    """
    bound: Future[Address] = Future()
    end: Future[None] = Future()
    thread = Thread(
        target=lambda: asyncio.run(_serve(health, address, bound, end)), name="probes", daemon=True
    )
    thread.start()
    try:
        yield await asyncio.wrap_future(bound)
    finally:
        end.set_result(None)
        await asyncio.to_thread(thread.join)


async def _serve(
    health: Health, address: Address, bound: "Future[Address]", end: "Future[None]"
) -> None:
    """Serve until `end` is set; `bound` gets the address, or why it cannot be used."""
    runner = web.AppRunner(_pages(health), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
    except OSError as error:
        bound.set_exception(AddressError(address, error))
    else:
        bound.set_result(Address(address.host, runner.addresses[0][1]))
        await asyncio.wrap_future(end)
    finally:
        await runner.cleanup()


def _pages(health: Health) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        if problem := health.fatal():
            return web.Response(status=503, text=f"{problem}\n")
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        missing, role = health.missing(), health.role()
        if not missing:
            return web.Response(text=f"ok: {role}\n" if role else "ok\n")
        lines = (f"{what}: {why}\n" for what, why in sorted(missing.items()))
        return web.Response(status=503, text="".join(lines))

    pages = web.Application()
    pages.router.add_get("/healthz", healthz)
    pages.router.add_get("/readyz", readyz)
    return pages
