"""Splitting a watch into lines."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_client.cache import watch
from numapin_client.errors import ConnectionFailedError, MalformedAnswerError


async def arriving(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def lines_of(chunks: list[bytes]) -> list[bytes]:
    return [line async for lines in watch.split_lines(arriving(chunks), "W") for line in lines]


@settings(deadline=None)
@given(st.data())
async def test_lines_do_not_depend_on_where_the_stream_is_cut(data: st.DataObject) -> None:
    text = data.draw(
        st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"\n", b"")), min_size=1)
    )
    stream = b"".join(line + b"\n" for line in text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert await lines_of(pieces) == [line for line in text if line]


async def test_an_unfinished_line_is_a_broken_connection() -> None:
    with pytest.raises(ConnectionFailedError, match="cut within an event"):
        await lines_of([b"whole\nha", b"lf"])


async def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_LINE_BYTES", 10)
    with pytest.raises(MalformedAnswerError, match="longer than 10 bytes"):
        await lines_of([b"123456", b"789012"])
