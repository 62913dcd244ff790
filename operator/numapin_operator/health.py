"""/healthz (the loop turns) and /readyz (what is still missing), for the kubelet's probes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web

from numapin_operator.settings import Address


class CannotListenError(Exception):
    """The address is taken, or not this machine's."""

    def __init__(self, address: Address, why: OSError) -> None:
        super().__init__(
            f"cannot listen on {address.host}:{address.port}: {why.strerror}; "
            "choose another --health-address"
        )


@dataclass(frozen=True, slots=True)
class Health:
    """Where the probe pages look.

    `missing` maps what is waited for to why it is not there yet; nothing missing means ready.
    `role` says whether this operator writes or stands by; either is ready.
    """

    missing: Callable[[], Mapping[str, str]]
    role: Callable[[], str]


def build_application(health: Health) -> web.Application:
    """The two probe pages; bodies are for people, the status code is for the kubelet.

    /healthz answers as long as the event loop turns: any part that fails ends the whole process.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        missing = health.missing()
        if not missing:
            return web.Response(text=f"ok: {health.role()}\n")
        lines = (f"{what}: {why}\n" for what, why in sorted(missing.items()))
        return web.Response(status=503, text="".join(lines))

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    return application


async def serve(application: web.Application, address: Address) -> web.AppRunner:
    """Listen; the caller cleans the runner up.

    Raises:
        CannotListenError: the address is taken or not this machine's.
    """
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host or None, address.port).start()
    except OSError as error:
        await runner.cleanup()
        raise CannotListenError(address, error) from error
    return runner
