"""CriClient against a server whose answers are cut, garbled or odd: each is a CriError."""

import asyncio
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_enforcer.runtime.cri_client import CriClient
from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.interface import CriError, RuntimeContainer

PREFACE_BYTES, HEADER_BYTES = 24, 9
DATA, HEADERS, RESET, SETTINGS, GO_AWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4
OK = ((":status", "200"), ("content-type", "application/grpc+proto"))
GOOD = pb.ListContainersResponse(
    containers=[pb.Container(id="a" * 64, metadata=pb.ContainerMetadata(name="main"))]
).SerializeToString()
Frames = Callable[[int], bytes]
"""The frames of an answer, for the stream that was asked on."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Source: RFC 9113, section 4.1."""
    length = struct.pack(">I", len(payload))[1:]
    return length + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(stream: int, pairs: tuple[tuple[str, str], ...], *, end: bool = False) -> bytes:
    flags = END_HEADERS | (END_STREAM if end else 0)
    return frame(HEADERS, flags, stream, hpack.Encoder().encode(pairs))


def message(stream: int, content: bytes, compressed: int = 0) -> bytes:
    """Source: gRPC over HTTP/2, "Length-Prefixed-Message"."""
    prefix = bytes([compressed]) + struct.pack(">I", len(content))
    return frame(DATA, 0, stream, prefix + content)


def answer(content: bytes, compressed: int = 0) -> Frames:
    return lambda stream: (
        headers(stream, OK)
        + message(stream, content, compressed)
        + headers(stream, (("grpc-status", "0"),), end=True)
    )


def trailers(*pairs: tuple[str, str]) -> Frames:
    return lambda stream: headers(stream, (*OK, *pairs), end=True)


DAMAGED: dict[str, Frames] = {
    "not a message": answer(b"\xff\xff\xff\xff\x0f"),
    "a text that is not UTF-8": answer(b"\x0a\x06\x1a\x04\x0a\x02\xff\xfe\x12\x02\xff\xfe"),
    "compressed": answer(b"ab", compressed=1),
    "no message": lambda stream: (
        headers(stream, OK) + headers(stream, (("grpc-status", "0"),), end=True)
    ),
    "a short message": lambda stream: (
        headers(stream, OK) + frame(DATA, END_STREAM, stream, b"\0\0\0\0\x0aab")
    ),
    "no HTTP status": lambda stream: headers(
        stream, (("content-type", "application/grpc"),), end=True
    ),
    "an HTTP error": lambda stream: headers(
        stream, ((":status", "503"), ("content-type", "text/html")), end=True
    ),
    "no gRPC status": trailers(),
    "a gRPC status that is a word": trailers(("grpc-status", "abc")),
    "an unknown gRPC status": trailers(("grpc-status", "99")),
    "a badly quoted text": trailers(("grpc-status", "2"), ("grpc-message", "%zz%ff%")),
    "bad details": trailers(
        ("grpc-status", "2"), ("grpc-message", "x"), ("grpc-status-details-bin", "!!!")
    ),
    "a reset": lambda stream: frame(RESET, 0, stream, struct.pack(">I", 8)),
    "a farewell": lambda _: frame(GO_AWAY, 0, 0, struct.pack(">II", 0, 0)),
}


async def _asked_stream(reader: asyncio.StreamReader) -> int:
    """The stream of the first request."""
    await reader.readexactly(PREFACE_BYTES)
    while True:
        header = await reader.readexactly(HEADER_BYTES)
        await reader.readexactly(int.from_bytes(header[:3], "big"))
        if header[3] == HEADERS:
            return int.from_bytes(header[5:], "big")


async def ask(folder: Path, frames: Frames, call: str) -> Any:
    """Make one call of a server that answers with `frames`."""
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(SETTINGS, 0, 0))
        writer.write(frames(await _asked_stream(reader)))
        await done.wait()
        writer.close()

    path = folder / "cri.sock"
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(serve, path)
    try:
        async with CriClient(path, call_timeout_seconds=0.2) as client:
            if call == "events":
                async with asyncio.timeout(5):
                    return [one async for one in client.events()]
            return await getattr(client, call)()
    finally:
        done.set()
        server.close()


@pytest.mark.parametrize("call", ["version", "containers"])
@pytest.mark.parametrize("name", DAMAGED)
async def test_a_damaged_answer_is_an_error_of_the_runtime(
    tmp_path: Path, name: str, call: str
) -> None:
    with pytest.raises(CriError):
        await ask(tmp_path, DAMAGED[name], call)


@pytest.mark.parametrize("name", ["not a message", "compressed", "no HTTP status", "a reset"])
async def test_a_damaged_stream_of_events_is_an_error_of_the_runtime(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(CriError):
        await ask(tmp_path, DAMAGED[name], "events")


async def test_the_error_names_the_socket_and_the_problem(tmp_path: Path) -> None:
    with pytest.raises(CriError, match=r"cri\.sock: its answer cannot be read \(DecodeError"):
        await ask(tmp_path, DAMAGED["not a message"], "containers")


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A good answer in which some bytes are others, are missing or are more."""
    content = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(content)))
        content[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(content)


@given(changed() | st.binary(max_size=80), st.sampled_from(["version", "containers", "sandboxes"]))
def test_any_answer_is_read_or_an_error_of_the_runtime(content: bytes, call: str) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(CriError):
        found = asyncio.run(ask(Path(folder), answer(content), call))
        if call == "containers":
            assert all(isinstance(one, RuntimeContainer) for one in found)


async def test_an_event_of_an_unknown_kind_is_read(tmp_path: Path) -> None:
    unknown: Any = 99
    status = pb.ContainerStatus(id="a", metadata=pb.ContainerMetadata(name="main"), state=unknown)
    event = pb.ContainerEventResponse(container_event_type=unknown, containers_statuses=[status])
    found = await ask(tmp_path, answer(event.SerializeToString()), "events")
    assert [[(one.id, one.name, one.state) for one in each] for each in found] == [
        [("a", "main", "Unknown")]
    ]
