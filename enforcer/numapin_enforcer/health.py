"""/healthz (the loop is alive) and /readyz (what is still missing), for the kubelet's probes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web


class AddressError(Exception):
    """The address for the probes cannot be listened on."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        super().__init__(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another address "
            "with --health-address"
        )


@dataclass(slots=True)
class Health:
    """What the loop tells about itself; written by the loop, read by the probes.

    `missing` maps what is waited for to why it is not there yet; nothing missing means ready.
    `outdated` says why only a restart helps; empty while nothing is so.
    """

    stale_after_seconds: float
    clock: Callable[[], float] = time.monotonic
    outdated: str = ""
    missing: dict[str, str] = field(default_factory=lambda: {"first pass": "not ended yet"})
    _passed_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._passed_at = self.clock()

    def passed(self, missing: Mapping[str, str]) -> None:
        """A pass over the node ended; `missing` is what it still lacks."""
        self._passed_at = self.clock()
        self.missing = dict(missing)

    def alive(self) -> bool:
        """Whether the last pass ended recently enough."""
        return self.idle_seconds() <= self.stale_after_seconds

    def idle_seconds(self) -> float:
        """How long ago the last pass ended."""
        return self.clock() - self._passed_at


def build_application(health: Health) -> web.Application:
    """The two probe pages; bodies are for people, the status code is for the kubelet."""

    async def healthz(_: web.Request) -> web.Response:
        if not health.alive():
            told = f"the last pass ended {health.idle_seconds():.0f} s ago\n"
            return web.Response(status=503, text=told)
        if health.outdated:
            return web.Response(status=503, text=f"{health.outdated}\n")
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if not health.missing:
            return web.Response(text="ok\n")
        lines = (f"{what}: {why}\n" for what, why in sorted(health.missing.items()))
        return web.Response(status=503, text="".join(lines))

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    return application


async def serve(application: web.Application, host: str, port: int) -> web.AppRunner:
    """Listen; the caller cleans the runner up.

    Raises:
        AddressError: the address is taken or not this machine's.
    """
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise AddressError(host, port, error) from error
    return runner
