"""Frames of ttrpc inside the frames of NRI's multiplexer.

Source: github.com/containerd/ttrpc, PROTOCOL.md; github.com/containerd/nri, pkg/net/multiplex.
Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from struct import Struct
from typing import Final

PLUGIN: Final = 1
"""The connection on which the runtime calls the plug-in."""

RUNTIME: Final = 2
"""The connection on which the plug-in calls the runtime."""

MOST_BYTES: Final = 4 << 20
"""The longest message of ttrpc."""

MOST_CHUNK: Final = 4096
"""The longest frame of the multiplexer that a runtime takes: it reads into a buffer of that size,
and a longer one ends its connection."""

_CHUNK: Final = Struct(">II")
"""Of the multiplexer: connection, length."""

_HEADER: Final = Struct(">IIBB")
"""Of ttrpc: length, stream, type, flags."""


class Kind(IntEnum):
    """What a message is. NRI has no streams, so none is of the third type, `data`."""

    REQUEST = 1
    RESPONSE = 2


class NriProtocolError(Exception):
    """What came is not what the protocol allows; the connection is of no use any more."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of ttrpc.

    Attributes:
        connection: `PLUGIN` or `RUNTIME`.
        stream: which request it belongs to.
        kind: what it is.
        payload: a message of protobuf.
    """

    connection: int
    stream: int
    kind: Kind
    payload: bytes


def encode(frame: Frame) -> bytes:
    """The bytes of a message, in frames of the multiplexer that the runtime takes."""
    header = _HEADER.pack(len(frame.payload), frame.stream, frame.kind, 0)
    message, chunks = header + frame.payload, list[bytes]()
    for begin in range(0, len(message), MOST_CHUNK):
        chunk = message[begin : begin + MOST_CHUNK]
        chunks += (_CHUNK.pack(frame.connection, len(chunk)), chunk)
    return b"".join(chunks)


@dataclass(slots=True)
class FrameReader:
    """Puts messages together. It holds no more than one of the longest of each connection."""

    _head: bytearray = field(default_factory=bytearray)
    _connection: int = 0
    _left: int = 0
    """How many bytes of the multiplexer's frame are still to come."""
    _partial: dict[int, bytearray] = field(
        default_factory=lambda: {PLUGIN: bytearray(), RUNTIME: bytearray()}
    )

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The messages that are complete with `data`.

        Raises:
            NriProtocolError: a length, connection or type is none that may be.
        """
        rest = memoryview(data)
        while rest:
            if not self._left:
                rest = self._read_head(rest)
                continue
            chunk, rest = rest[: self._left], rest[self._left :]
            self._left -= len(chunk)
            yield from self._messages(chunk)

    def _read_head(self, rest: memoryview) -> memoryview:
        missing = _CHUNK.size - len(self._head)
        self._head += rest[:missing]
        if len(self._head) == _CHUNK.size:
            self._connection, self._left = _CHUNK.unpack(self._head)
            self._head.clear()
            if self._connection not in self._partial:
                raise NriProtocolError(f"connection {self._connection} is not one of NRI")
            if self._left > _HEADER.size + MOST_BYTES:
                raise NriProtocolError(f"a frame of {self._left} bytes is longer than any may be")
        return rest[missing:]

    def _messages(self, chunk: memoryview) -> Iterator[Frame]:
        partial = self._partial[self._connection]
        partial += chunk
        while len(partial) >= _HEADER.size:
            length, stream, kind, _flags = _HEADER.unpack_from(partial)
            if length > MOST_BYTES:
                raise NriProtocolError(f"a message of {length} bytes is longer than any may be")
            if kind not in iter(Kind):
                raise NriProtocolError(f"a message has type {kind}, which NRI does not use")
            end = _HEADER.size + length
            if len(partial) < end:
                return
            with memoryview(partial) as whole:
                payload = bytes(whole[_HEADER.size : end])
            del partial[:end]
            yield Frame(self._connection, stream, Kind(kind), payload)
