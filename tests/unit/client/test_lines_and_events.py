"""Splitting a watch into lines, and writing Events within the API's limits."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_client import watch
from numapin_client.errors import ConnectionFailedError, MalformedAnswerError
from numapin_client.events import NORMAL, Happening, Reporter, build_event, object_reference
from numapin_client.resources import Json


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


def event(note: str = "because", instance: str = "me", name: str = "pod") -> Json:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns"}}
    now = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    happening = Happening(NORMAL, "Pinned", "Pin", note)
    return build_event(object_reference(body), happening, Reporter("numapin.io/x", instance), now)


def test_an_event_says_what_who_and_when() -> None:
    written = event()
    assert written["metadata"].pop("name").startswith("pod.")
    assert written == {
        "metadata": {"namespace": "ns"},
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "pod"},
        "type": "Normal",
        "reason": "Pinned",
        "action": "Pin",
        "note": "because",
        "eventTime": "2026-01-02T03:04:05.000678Z",
        "reportingController": "numapin.io/x",
        "reportingInstance": "me",
    }


def test_two_events_have_two_names() -> None:
    assert event()["metadata"]["name"] != event()["metadata"]["name"]


@settings(deadline=None)
@given(st.text(max_size=2000))
def test_a_note_is_cut_to_whole_characters(note: str) -> None:
    written = event(note=note)["note"]
    assert len(written.encode()) <= 1024
    assert written == note or (written[-1] == "…" and note.startswith(written[:-1]))


@pytest.mark.parametrize("name", ["n" * 253, "a." * 126 + "a", "short"])
def test_the_name_of_an_event_is_a_valid_one(name: str) -> None:
    written = event(name=name)["metadata"]["name"]
    assert len(written) <= 253
    assert all(part and part[0].isalnum() and part[-1].isalnum() for part in written.split("."))
