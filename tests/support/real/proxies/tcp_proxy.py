"""A wire between a client and a server that can be cut or fall silent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_lab.controlplane.servers import ControlPlane


class Wire:
    """Forwards bytes both ways, for as long as it is whole."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    def fall_silent(self) -> None:
        """Keep connections, and take new ones, but forward nothing more."""
        self._open.clear()

    def cut(self) -> None:
        """Break all connections; new ones work."""
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Forward again."""
        self._open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join one client to the server until either hangs up."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError):
                there, back = await asyncio.open_connection(self._host, self._port)
                self._writers |= {writer, back}
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._forward(reader, back), name="there")
                    tasks.create_task(self._forward(there, writer), name="back")
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while chunk := await reader.read(65536):
                    await self._open.wait()
                    writer.write(chunk)
                    await writer.drain()
        finally:
            writer.close()
            self._writers.discard(writer)

    async def end(self) -> None:
        """Close every connection and accept no more."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def wire_to(host: str, port: int) -> AsyncIterator[Wire]:
    """Lay a wire to a server; `port` of it on 127.0.0.1 is where to connect."""
    wire = Wire(host, port)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        await wire.end()
        await server.wait_closed()


@asynccontextmanager
async def wired_client(plane: ControlPlane) -> AsyncIterator[tuple[Wire, ApiClient]]:
    """A wire to an API server, and a client whose every byte goes through it."""
    login = kubeconfig_login(str(plane.kubeconfig))
    async with wire_to("127.0.0.1", plane.ports.apiserver) as wire:
        through = replace(login, server=f"https://127.0.0.1:{wire.port}")
        async with connect(through) as client:
            yield wire, client
