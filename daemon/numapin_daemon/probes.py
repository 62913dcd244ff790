"""/healthz (no restart is needed) and /readyz (nothing is missing), for the kubelet's probes."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.options import Address


class AddressError(Exception):
    """The address of the probes is taken, or it is not this machine's."""

    def __init__(self, address: Address, error: OSError) -> None:
        super().__init__(
            f"cannot listen on {address}: {error.strerror or error}; choose another address with "
            "--health-address"
        )


def _nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Health:
    """What the probes answer; each part is called for each request.

    Attributes:
        missing: what is waited for to why it is not there yet; nothing missing means ready.
        fatal: why only a restart helps; empty while nothing is wrong in that way.
        role: what a daemon that is ready does, such as "standing by"; may be empty.
    """

    missing: Callable[[], Mapping[str, str]]
    fatal: Callable[[], str] = _nothing
    role: Callable[[], str] = _nothing


@dataclass(slots=True)
class LoopHealth:
    """Health of a loop, which must make a pass from time to time.

    Attributes:
        stale_after_seconds: a loop that has made no pass for longer needs a restart.
        clock: the machine's clock by default.
        outdated: why only a restart helps; written by the loop, empty while nothing is wrong.
    """

    stale_after_seconds: float
    clock: Clock = field(default_factory=SystemClock)
    outdated: str = ""
    _missing: Mapping[str, str] = field(init=False)
    _passed_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.passed({"first pass": "not ended yet"})

    def passed(self, missing: Mapping[str, str]) -> None:
        """A pass has ended; `missing` is what is still waited for, to why."""
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
    """Answer the probes as long as the context lasts.

    The status code is for the kubelet, the body for people. /healthz answers as long as the event
    loop runs.

    Yields:
        The address, with the port that the kernel chose where 0 was asked for.

    Raises:
        AddressError: the address is taken or not this machine's.
    """
    runner = web.AppRunner(_pages(health), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host or None, address.port).start()
        except OSError as error:
            raise AddressError(address, error) from error
        yield Address(address.host, runner.addresses[0][1])
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
