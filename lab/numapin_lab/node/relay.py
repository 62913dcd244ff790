"""Pass TCP connections on, through unix sockets: they lead from one network namespace to another.

`python -m numapin_lab.node.relay LISTEN=CONNECT...` listens on each LISTEN and connects what comes
to CONNECT. Each is `ADDRESS:PORT`, or the path of a unix socket. It runs until a signal ends it.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

CHUNK_BYTES = 64 * 1024
CONNECT_SECONDS = 30.0


@dataclass(frozen=True)
class Endpoint:
    """One side: a unix socket at `path`, else TCP at `address` and `port`."""

    path: str | None = None
    address: str = ""
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> "Endpoint":
        """Read `ADDRESS:PORT` or an absolute path.

        Raises:
            ValueError: it is neither.
        """
        if text.startswith("/"):
            return cls(path=text)
        address, colon, port = text.rpartition(":")
        if not colon or not address or not port.isdigit():
            raise ValueError(f"{text!r} is neither ADDRESS:PORT nor an absolute path")
        return cls(address=address, port=int(port))

    def __str__(self) -> str:
        return self.path or f"{self.address}:{self.port}"


@dataclass(frozen=True)
class Route:
    """Connections to `listen` are passed on to `connect`."""

    listen: Endpoint
    connect: Endpoint

    @classmethod
    def parse(cls, text: str) -> "Route":
        """Read `LISTEN=CONNECT`.

        Raises:
            argparse.ArgumentTypeError: it is something else.
        """
        listen, equals, connect = text.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"{text!r} is not LISTEN=CONNECT")
        try:
            return cls(Endpoint.parse(listen), Endpoint.parse(connect))
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    def __str__(self) -> str:
        return f"{self.listen}={self.connect}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Pass connections on until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m numapin_lab.node.relay", description=__doc__)
    parser.add_argument("routes", nargs="+", type=Route.parse, metavar="LISTEN=CONNECT")
    asyncio.run(_serve(parser.parse_args(arguments).routes))
    return 0


async def _serve(routes: Sequence[Route]) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with contextlib.AsyncExitStack() as servers:
        for route in routes:
            await servers.enter_async_context(await listen(route))
            print(f"relay: {route.listen} leads to {route.connect}", file=sys.stderr, flush=True)
        await stopped.wait()


async def listen(route: Route) -> asyncio.Server:
    """Start to pass on the connections of one route.

    Raises:
        OSError: the address is taken, or does not exist here.
    """
    # An event loop holds tasks weakly: without this one in progress is sometimes collected.
    in_progress = set[asyncio.Task[None] | None]()

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        in_progress.add(task)
        try:
            await _pass_on(route.connect, reader, writer)
        finally:
            in_progress.discard(task)

    if route.listen.path is None:
        return await asyncio.start_server(passed_on, route.listen.address, route.listen.port)
    return await asyncio.start_unix_server(passed_on, route.listen.path)


async def _pass_on(
    to: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Connect, and copy in both directions until both have ended.

    A connection that cannot be made is closed, as a server would refuse it: the client retries.
    """
    with contextlib.closing(writer):
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                answers, requests = await _connect(to)
        except OSError as error:
            print(f"relay: {to}: {error}", file=sys.stderr, flush=True)
            return
        with contextlib.closing(requests):
            await asyncio.gather(_copy(reader, requests), _copy(answers, writer))


async def _connect(to: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if to.path is None:
        return await asyncio.open_connection(to.address, to.port)
    return await asyncio.open_unix_connection(to.path)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy until `source` ends, and end `target` then; a broken connection ends both directions."""
    try:
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        target.transport.abort()


if __name__ == "__main__":
    sys.exit(main())
