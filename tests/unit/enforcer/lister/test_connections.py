"""Clients that are many, slow, deaf or damaged take nothing from others."""

import asyncio
import random
import socket
import time
from pathlib import Path

import pytest
from grpclib.const import Status
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes

from numapin_enforcer.lister import connections, server
from numapin_enforcer.lister.connections import MOST_CONNECTIONS, Connections
from numapin_enforcer.lister.server import MOST_CALLS
from support.fakes.kubelets.before_exporters import Scene
from support.real.waiting import eventually

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
PING = bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + bytes(8)
LIST = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/v1.PodResourcesLister/List"),
    (":authority", "numapin"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(scene: Scene) -> Pair:
    return await asyncio.open_unix_connection(scene.path)


async def test_of_too_many_connections_the_oldest_goes(scene: Scene) -> None:
    oldest, _ = first = await connect(scene)
    others = [await connect(scene) for _ in range(MOST_CONNECTIONS - 1)]
    assert await scene.answers(), "one more"
    while await oldest.read(4096):
        pass
    assert not any(reader.at_eof() for reader, _ in others)
    for _, writer in (first, *others):
        writer.close()


async def test_a_client_that_reads_nothing_is_cut_off(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pings are not answered any more once the kernel has enough of the answers."""
    monkeypatch.setattr(connections, "STUCK_SECONDS", 0.01)
    monkeypatch.setattr(connections, "CPU_SHARE", 1000.0)
    reader, writer = await connect(scene)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(PREFACE)

    async def is_cut_off() -> bool:
        writer.write(PING * 1000)
        try:
            async with asyncio.timeout(0.1):
                await writer.drain()
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return False

    await eventually(is_cut_off)
    assert await scene.answers()


async def ask_and_read_nothing(scene: Scene) -> asyncio.StreamWriter:
    """Make as many calls as are answered at once, and take none of the answers."""
    _, writer = await connect(scene)
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
    for stream in range(1, 2 * MOST_CALLS, 2):
        client.send_headers(stream, LIST)
        client.send_data(stream, bytes(5), end_stream=True)
    writer.write(client.data_to_send())
    await eventually(lambda: len(scene.kubelet.asked) == MOST_CALLS)
    return writer


async def test_as_many_answers_as_wait_to_be_read_are_kept(scene: Scene) -> None:
    writer = await ask_and_read_nothing(scene)
    assert (await scene.refusal())[0] is Status.RESOURCE_EXHAUSTED
    writer.close()
    await eventually(scene.answers)


async def test_an_answer_that_nobody_reads_is_not_kept_for_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CALL_SECONDS", 0.2)
    writer = await ask_and_read_nothing(scene)
    await eventually(scene.answers)
    writer.close()


@pytest.mark.parametrize("seed", range(5))
async def test_damaged_frames_end_their_own_connection(scene: Scene, seed: int) -> None:
    rng = random.Random(seed)
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    client.send_headers(1, LIST)
    client.send_data(1, bytes(5), end_stream=True)
    sound = client.data_to_send()
    for _ in range(20):
        damaged = bytearray(sound)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(24, len(damaged))] = rng.randrange(256)
        reader, writer = await connect(scene)
        writer.write(bytes(damaged))
        writer.write_eof()
        await reader.read()
        writer.close()
    await eventually(scene.answers)


class Echo(asyncio.Protocol):
    """Says what it got."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        pass


async def test_nothing_is_read_or_accepted_while_too_much_was_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer takes more than the share of an age."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(5)
        listener.setblocking(False)
        made = Connections(listener, Echo)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        monkeypatch.setattr(made._cpu_time, "refill_per_second", 1e-9)
        monkeypatch.setattr(made._cpu_time, "_tokens", 0.0)
        writer.write(b"b")
        assert await reader.readexactly(1) == b"b"
        assert made.is_resting
        writer.write(b"c")
        _, other = await asyncio.open_unix_connection(path)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(made.open) == 1
        monkeypatch.undo()
        made._cpu_time.spend(-1.0, time.monotonic())
        made._resume()
        assert await reader.readexactly(1) == b"c"
        await eventually(lambda: len(made.open) == 2)
        made.close()
        for one in (writer, other):
            one.close()
