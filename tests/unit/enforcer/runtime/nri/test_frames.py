"""Frames of ttrpc in frames of the multiplexer: any cut, and what no runtime may send."""

import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_enforcer.runtime.nri.frames import (
    MOST_BYTES,
    MOST_CHUNK,
    PLUGIN,
    RUNTIME,
    Frame,
    FrameReader,
    Kind,
    NriProtocolError,
    encode,
)

FRAMES = st.builds(
    Frame,
    st.sampled_from([PLUGIN, RUNTIME]),
    st.integers(0, 2**32 - 1),
    st.sampled_from(list(Kind)),
    st.one_of(st.binary(max_size=40), st.integers(4070, 9000).map(bytes)),
)


def header(length: int, kind: int = Kind.REQUEST, connection: int = PLUGIN) -> bytes:
    """The beginning of a message of that length."""
    return struct.pack(">IIIIBB", connection, 10 + length, length, 1, kind, 0)


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(0, 30_000), max_size=8))
def test_every_cut_gives_the_same_messages(frames: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encode, frames))
    ends = sorted({0, len(data), *(min(one, len(data)) for one in cuts)})
    reader = FrameReader()
    assert [one for a, b in pairwise(ends) for one in reader.feed(data[a:b])] == frames


@given(FRAMES, FRAMES)
def test_frames_of_both_connections_may_be_mixed(one: Frame, other: Frame) -> None:
    message = struct.pack(">IIBB", len(one.payload), one.stream, one.kind, 0) + one.payload
    first, rest = message[:7], message[7:]
    other = Frame(3 - one.connection, other.stream, other.kind, other.payload)
    mux = [struct.pack(">II", one.connection, len(part)) + part for part in (first, rest)]
    data = mux[0] + encode(other) + mux[1]
    assert list(FrameReader().feed(data)) == [other, one]


@given(FRAMES)
def test_the_runtime_gets_no_longer_frame_than_it_reads(frame: Frame) -> None:
    data = encode(frame)
    while data:
        connection, length = struct.unpack(">II", data[:8])
        assert (connection, length <= MOST_CHUNK) == (frame.connection, True)
        data = data[8 + length :]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(struct.pack(">II", 0, 4), "connection 0", id="connection 0"),
        pytest.param(struct.pack(">II", 3, 4), "connection 3", id="connection 3"),
        pytest.param(struct.pack(">II", PLUGIN, 2**32 - 1), "4294967295 bytes", id="long frame"),
        pytest.param(struct.pack(">II", PLUGIN, MOST_BYTES + 11), "longer than any", id="by one"),
        pytest.param(
            struct.pack(">IIIIBB", PLUGIN, 10, MOST_BYTES + 1, 1, 1, 0), "message of", id="message"
        ),
        pytest.param(header(0, kind=3), "type 3", id="a stream's data"),
        pytest.param(header(0, kind=0), "type 0", id="type 0"),
        pytest.param(header(0, kind=255), "type 255", id="type 255"),
    ],
)
def test_what_no_runtime_may_send_is_an_error(data: bytes, problem: str) -> None:
    with pytest.raises(NriProtocolError, match=problem):
        list(FrameReader().feed(data))


def test_the_longest_message_is_read() -> None:
    frame = Frame(PLUGIN, 1, Kind.REQUEST, bytes(MOST_BYTES))
    assert list(FrameReader().feed(encode(frame))) == [frame]


def test_empty_frames_are_nothing() -> None:
    frame = Frame(PLUGIN, 1, Kind.REQUEST, b"x")
    empty = struct.pack(">II", PLUGIN, 0)
    assert list(FrameReader().feed(empty * 1000 + encode(frame) + empty)) == [frame]


@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_an_error(data: bytes) -> None:
    with suppress(NriProtocolError):
        list(FrameReader().feed(data))
