"""Keep a copy of the objects of one source up to date, whatever the connection does."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, Generic, NoReturn, TypeVar

from numapin_client.backoff import Backoff
from numapin_client.errors import (
    ClientError,
    ConnectionFailedError,
    GoneError,
    IdleTimeoutError,
    MalformedAnswerError,
    TooManyRequestsError,
    UnavailableError,
)
from numapin_client.objects import CHUNK_LIMIT, ApiClient, Source
from numapin_client.resources import Json, Key
from numapin_client.store import Change, Store
from numapin_client.watch import BOOKMARK, DELETED, WatchEvent, WatchTiming, watch

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InformerTiming:
    """How patient an informer is, in seconds.

    Attributes:
        session_seconds: shortest and longest watch, see `WatchTiming`.
        idle_seconds: how long a watch may be silent.
        backoff_base_seconds: upper bound of the first wait after a failure.
        backoff_cap_seconds: upper bound of all waits that the server does not ask for.
        chunk_limit: objects in one answer to a list.
    """

    session_seconds: tuple[float, float] = (300.0, 600.0)
    idle_seconds: float = 120.0
    backoff_base_seconds: float = 0.5
    backoff_cap_seconds: float = 30.0
    chunk_limit: int = CHUNK_LIMIT


DEFAULT_TIMING: Final = InformerTiming()


class Informer(Generic[T]):
    """A copy of the objects of one source, kept up to date by list and watch.

    Level-triggered: `items` is the whole state, and `on_change` only says where to look.

    Attributes:
        source: what is copied.
        items: the copy; a live view, empty until the first list.
        synced: set for good once the first list is complete.
        problem: why the copy may be out of date; None while a watch (or list) works.
        relists: how often the whole source was listed.
    """

    def __init__(
        self,
        client: ApiClient,
        source: Source,
        decode: Callable[[Json], T],
        on_change: Callable[[Sequence[Change[T]]], None] | None = None,
        timing: InformerTiming = DEFAULT_TIMING,
    ) -> None:
        """Make an empty copy; `run` fills it.

        Args:
            client: the API server.
            source: what to copy.
            decode: see `Store`.
            on_change: told what came, changed and went, in batches, after `items` shows it;
                must be quick and must not raise.
            timing: how patient to be.
        """
        self.source = source
        self._client, self._on_change, self._timing = client, on_change, timing
        self._store = Store(decode)
        self._random = random.Random()  # noqa: S311 (jitter, no secret)
        self._backoff = Backoff(
            timing.backoff_base_seconds, timing.backoff_cap_seconds, self._random
        )
        self._version = ""  # where the next watch starts; empty when only a list will do
        self._watching = False
        self.items: Mapping[Key, T] = self._store.items
        self.synced = asyncio.Event()
        self.problem: ClientError | None = None
        self.relists = 0

    @property
    def connected(self) -> bool:
        """Whether the copy is complete and, as far as anybody can know, up to date."""
        return self.synced.is_set() and self.problem is None

    async def run(self) -> NoReturn:
        """List, watch, and begin again where needed, until cancelled.

        Raises:
            only what `decode` and `on_change` raise: every failure of the server and of the
            connection is met by trying again, and shown in `problem`.
        """
        while True:
            self._watching = False
            try:
                if not self._version:
                    await self._list()
                delivered = await self._watch()
            except ClientError as error:
                await self._recover(error)
            else:
                if not delivered:
                    await asyncio.sleep(self._backoff.next_seconds())

    async def _recover(self, error: ClientError) -> None:
        """Choose between resuming the watch and listing anew, and wait."""
        self.problem = error
        if not self._resumable(error):
            self._version = ""
        wait_seconds = self._backoff.next_seconds(error.retry_after_seconds)
        log.warning(
            "lost the API server, trying again",
            extra={
                "source": self.source.path,
                "error": str(error),
                "wait_seconds": wait_seconds,
                "relist": not self._version,
            },
        )
        await asyncio.sleep(wait_seconds)

    def _resumable(self, error: ClientError) -> bool:
        """Whether what we hold can be brought up to date by watching from the last version.

        A server that falls silent amid a watch may have been replaced by one whose history is
        another one (etcd restored from a backup): it then holds back every event up to our
        version. So silence, like nonsense, costs a new list.
        """
        if isinstance(error, MalformedAnswerError):
            return False
        if isinstance(error, IdleTimeoutError):
            return not self._watching
        return isinstance(error, ConnectionFailedError | TooManyRequestsError | UnavailableError)

    async def _list(self) -> None:
        """Take in the whole source, and forget what it no longer has.

        When the server forgets the list between two chunks we begin again, and the third time
        take it whole: a client too slow for chunks would never end.
        """
        self.relists += 1
        for limit in (self._timing.chunk_limit, self._timing.chunk_limit):
            with suppress(GoneError):
                return await self._list_once(limit)
            log.info("the list expired between two chunks", extra={"source": self.source.path})
        return await self._list_once(0)

    async def _list_once(self, limit: int) -> None:
        """List in chunks of `limit` objects; 0 is all at once."""
        seen: set[Key] = set()
        token, version = await self._take_chunk("", limit, seen)
        while token:
            token, version = await self._take_chunk(token, limit, seen)
        self._tell(self._store.keep_only(seen))
        self._version = version
        self.problem = None
        self.synced.set()

    async def _take_chunk(self, token: str, limit: int, seen: set[Key]) -> tuple[str, str]:
        """Take in one chunk, and let go of it before the next: it is large.

        Returns:
            The token of the next chunk, and the version that the list shows.
        """
        chunk = await self._client.list_chunk(self.source, token, limit)
        seen.update(map(Key.of, chunk.items))
        self._tell([self._store.put(each) for each in chunk.items])
        return chunk.next, chunk.resource_version

    async def _watch(self) -> bool:
        """Follow changes until the server ends the watch; say whether it told of anything."""
        timing = WatchTiming(
            self._random.uniform(*self._timing.session_seconds), self._timing.idle_seconds
        )
        delivered = False
        batches = watch(self._client.connection, self.source, self._version, timing)
        async with aclosing(batches):
            async for events in batches:
                self._watching, self.problem = True, None
                if events:
                    delivered = True
                    self._backoff.reset()
                    self._tell([self._apply(event) for event in events])
        return delivered

    def _apply(self, event: WatchEvent) -> Change[T] | None:
        self._version = event.body["metadata"]["resourceVersion"]
        if event.kind == BOOKMARK:
            return None
        if event.kind == DELETED:
            return self._store.drop(Key.of(event.body))
        return self._store.put(event.body)

    def _tell(self, changes: Sequence[Change[T] | None]) -> None:
        real = [change for change in changes if change is not None]
        if real and self._on_change is not None:
            self._on_change(real)
