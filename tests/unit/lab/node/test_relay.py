"""Connections are passed on whole, in both directions, and end together."""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_lab.node.relay import CHUNK_BYTES, Endpoint, Route, listen

LARGE = bytes(range(256)) * (3 * CHUNK_BYTES // 256)


@contextlib.asynccontextmanager
async def relayed(tmp_path: Path, server: asyncio.Server) -> AsyncIterator[Endpoint]:
    """TCP to a unix socket, and from there to the server: as a lab connects two networks."""
    address, port = server.sockets[0].getsockname()[:2]
    middle = Endpoint(path=str(tmp_path / "middle.sock"))
    routes = (
        Route(middle, Endpoint(address=address, port=port)),
        Route(Endpoint(address="127.0.0.1", port=0), middle),
    )
    async with await listen(routes[0]), await listen(routes[1]) as first:
        yield Endpoint(address="127.0.0.1", port=first.sockets[0].getsockname()[1])


async def test_all_bytes_arrive_and_the_end_of_each_direction(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = await reader.read()  # until the client has ended its direction
        writer.write(received[::-1])
        writer.write_eof()
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, relayed(tmp_path, server) as at:
        reader, writer = await asyncio.open_connection(at.address, at.port)
        writer.write(LARGE)
        writer.write_eof()
        assert await reader.read() == LARGE[::-1]
        writer.close()


async def test_a_server_that_is_gone_ends_the_connection(tmp_path: Path) -> None:
    gone = Endpoint(path=str(tmp_path / "gone.sock"))
    async with await listen(Route(Endpoint(address="127.0.0.1", port=0), gone)) as first:
        port = first.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()


def test_a_route_is_read_as_it_is_written() -> None:
    text = "10.0.0.1:443=/run/lab/apiserver.sock"
    route = Route.parse(text)
    assert route.listen == Endpoint(address="10.0.0.1", port=443)
    assert route.connect == Endpoint(path="/run/lab/apiserver.sock")
    assert str(route) == text


@pytest.mark.parametrize(
    "text", ["10.0.0.1:443", "10.0.0.1=/run/a", "relative=/run/a", "=", ":1=/a"]
)
def test_what_is_no_route_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"is (not|neither)"):
        Route.parse(text)
