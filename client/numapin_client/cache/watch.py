"""One watch: the changes that the API server sends, until it ends or breaks."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from numapin_client.cache.sieve import Sieve
from numapin_client.client import Source
from numapin_client.errors import ConnectionFailedError, MalformedAnswerError, error_of
from numapin_client.resources import Json
from numapin_client.transport.connection import Connection, Request

BOOKMARK: Final = "BOOKMARK"
DELETED: Final = "DELETED"
_KINDS: Final = frozenset({"ADDED", "MODIFIED", DELETED, BOOKMARK})

MAX_LINE_BYTES: Final = 64 * 2**20
"""A longer line is not an event: etcd refuses objects larger than a few MiB."""


class WatchEvent(NamedTuple):
    """One line of a watch."""

    kind: str
    """`ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`."""
    body: Json
    """The object; of a bookmark, only the resourceVersion is valid."""


@dataclass(frozen=True, slots=True)
class WatchTiming:
    """How long one watch may last, and what is read of it.

    Attributes:
        session_seconds: when the server ends it.
        idle_seconds: how long the server may be silent.
        sieve: drops lines before they are parsed; None drops none.
    """

    session_seconds: float
    idle_seconds: float
    sieve: Sieve | None = None


async def watch(
    connection: Connection, source: Source, resource_version: str, timing: WatchTiming
) -> AsyncGenerator[Sequence[WatchEvent], None]:
    """Watch from a version on, until the server ends the watch.

    Yields:
        An empty sequence once the server has accepted the watch, then the events, as many together
        as arrived together.

    Raises:
        GoneError: the version is older than the server's history; list again.
        IdleTimeoutError: the server sent nothing for too long.
        MalformedAnswerError: a line is not an event.
        ClientError: as `Connection.ask`.
    """
    params = source.params | {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": str(max(1, round(timing.session_seconds))),
    }
    request = Request("GET", source.path, params)
    asked = f"WATCH {connection.login.server}{source.path}"
    async with connection.stream(request, timing.idle_seconds) as response:
        yield ()
        async for lines in split_lines(response.content.iter_any(), asked):
            kept = lines if timing.sieve is None else filter(timing.sieve.may_want, lines)
            yield [_event(connection.parse(line, asked), asked) for line in kept]


async def split_lines(chunks: AsyncIterable[bytes], asked: str) -> AsyncIterator[list[bytes]]:
    """Yield the complete lines of a byte stream as they arrive.

    Raises:
        ConnectionFailedError: the stream ended within a line.
        MalformedAnswerError: a line is longer than `MAX_LINE_BYTES`.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        head, *rest = chunk.split(b"\n")
        parts.append(head)
        size += len(head)
        if rest:
            lines = [b"".join(parts), *rest[:-1]]
            parts, size = [rest[-1]], len(rest[-1])
            yield [line for line in lines if line]
        if size > MAX_LINE_BYTES:
            raise MalformedAnswerError(asked, f"a line is longer than {MAX_LINE_BYTES} bytes")
    if size:
        raise ConnectionFailedError(asked, "the connection was cut within an event")


def _event(answer: Json, asked: str) -> WatchEvent:
    kind, body = answer.get("type"), answer.get("object")
    if kind == "ERROR" and isinstance(body, dict):
        raise error_of(asked, int(body.get("code") or 500), body)
    if kind not in _KINDS or not isinstance(body, dict) or "metadata" not in body:
        raise MalformedAnswerError(asked, f"not a watch event: {str(answer)[:200]}")
    return WatchEvent(kind, body)
