"""A copy of the objects of one source that follows the API server and survives every failure."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final, Generic, NoReturn, TypeVar

from numapin_client.cache.chunked_list import ChunkedList
from numapin_client.cache.informer_settings import (
    BATCH,
    CHUNK_GROWTH,
    DEFAULT_TIMING,
    SHORT_WATCHES,
    Hooks,
    InformerTiming,
)
from numapin_client.cache.store import Change, Store
from numapin_client.cache.watch import BOOKMARK, DELETED, WatchEvent, WatchTiming, watch
from numapin_client.client import ApiClient, Source
from numapin_client.errors import (
    ClientError,
    ConnectionFailedError,
    GoneError,
    MalformedAnswerError,
    TooManyRequestsError,
    UnavailableError,
)
from numapin_client.resources import Json, Key, is_older
from numapin_daemon.flowcontrol.backoff import Backoff
from numapin_daemon.kept_error import without_frames
from numapin_daemon.slices import Slices

T = TypeVar("T")
E = TypeVar("E")

log = logging.getLogger(__name__)

_RESUMABLE: Final = (ConnectionFailedError, TooManyRequestsError, UnavailableError)
"""Failures after which a watch from the last version brings the copy up to date."""


class Informer(Generic[T]):
    """A copy of the objects of one source, kept up to date by list and watch.

    Level-triggered: `items` is the whole state; `on_change` only says which keys changed.

    Attributes:
        source: the objects that are copied.
        items: the copy; always current, empty until the first list.
        hooks: to be set before `run`; see there.
        synced: set once the first list is complete, and never cleared.
        problem: why the copy may be out of date; None while a watch or list works.
        behind_since: since when the server has accepted no watch, by the timing's clock; None while
            it has. A watch that falls silent counts once that is noticed.
        heard_at: when the server answered last, by the timing's clock: with a list, or on a watch
            with an event or a bookmark, which comes each minute.
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
            on_change: called with each batch of changes once `items` contains them; must be quick
                and must not raise.
            timing: how long to wait.
        """
        self.source, self.hooks = source, Hooks()
        self._client, self._on_change, self._timing = client, on_change, timing
        self._store = Store(decode)
        self._random = random.Random()  # noqa: S311 (jitter, no secret)
        most_seconds = max(timing.backoff_cap_seconds, timing.refused_cap_seconds)
        self._backoff = Backoff(timing.backoff_base_seconds, most_seconds, self._random)
        self._version = ""  # where the next watch starts; empty when only a list will do
        self._doubtful = False  # whether the server may be one with another history
        self._target = ""  # what `catch_up` waits for
        self._short_watches = 0
        self._watching: asyncio.Timeout | None = None
        self._progress = asyncio.Event()
        self._answered = asyncio.Event()
        self.items: Mapping[Key, T] = self._store.items
        self.synced = asyncio.Event()
        self.problem: ClientError | None = None
        self.behind_since: float | None = timing.clock.monotonic()
        self.heard_at = self.behind_since

    async def run(self) -> NoReturn:
        """List, watch, and recover from failures until cancelled.

        It raises only what `on_change` raises. Failures of the server and of the connection are
        retried; `problem` contains the last one.
        """
        while True:
            try:
                await self._compare()
                in_vain = self._is_behind() and self._short_watches >= SHORT_WATCHES
                if not self._version or in_vain:
                    await self._list()
                await self._watch()
            except TimeoutError:
                continue  # `catch_up` had an answer before this request
            except ClientError as error:
                await self._recover(error)

    async def catch_up(self) -> None:
        """Wait until the copy shows all that the API server had when this was called.

        A watch without changes gets a bookmark each minute, and one 2 s before its end. So the
        running watch is ended and short ones follow; if two bring no news, the source is listed. A
        back-off ends too, and a request without an answer. Reading the version makes the server's
        watch cache ask etcd how far it is, which bookmarks then say.
        Source: apiserver `cacheWatcher.nextBookmarkTime`; KEP-2340.

        Raises:
            ClientError: the server does not answer which version it has.
        """
        self._target = (await self._client.list_chunk(self.source, limit=1)).resource_version
        self._short_watches = 0
        self._backoff.reset()
        self._answered.set()
        if self._is_behind() and self._watching is not None and not self._watching.expired():
            self._watching.reschedule(asyncio.get_running_loop().time())
        while self._is_behind():
            self._progress.clear()
            await self._progress.wait()

    def _is_behind(self) -> bool:
        return bool(self._target) and is_older(self._version, self._target)

    async def _recover(self, error: ClientError) -> None:
        """Choose between resuming the watch and listing again, and wait.

        An outage is logged when it begins, and whenever the error differs.
        """
        self._fell_behind()
        level = logging.DEBUG if str(error) == str(self.problem) else logging.WARNING
        self.problem = without_frames(error)
        self._doubtful = True
        if isinstance(error, MalformedAnswerError) or not isinstance(error, _RESUMABLE):
            self._version = ""
        self.hooks.failed(error)
        asked_seconds, most_seconds = error.retry_after_seconds, self._timing.most_seconds(error)
        backoff_seconds = self._backoff.next_seconds(most_seconds=most_seconds)
        about = {"source": self.source.path, "error": str(error), "relist": not self._version}
        about["wait_seconds"] = (asked_seconds or 0.0) + backoff_seconds
        log.log(level, "cannot follow the API server, trying again", extra=about)
        if asked_seconds:
            await self._timing.clock.sleep(asked_seconds)
        await self._back_off(backoff_seconds)

    async def _back_off(self, seconds: float) -> None:
        """Wait, or until `catch_up` has had an answer of the server."""
        self._answered.clear()
        await self._timing.clock.wait(self._answered, seconds)

    async def _compare(self) -> None:
        """Force a new list if the server's version is older than the last one seen.

        An etcd that was restored from a backup, or replaced, starts at a lower version. The server
        then sends no event up to the version that the watch starts from.
        Source: KEP-5504 (versions of one resource may be compared).
        """
        if self._version and self._doubtful:
            newest = self._newest()
            async with self._until_ended():
                now = (await self._client.list_chunk(self.source, limit=1)).resource_version
            if is_older(now, str(newest)):
                self._start_over(now, newest)
        self._doubtful = False

    def _newest(self) -> int:
        """The newest version that was seen, by us or by the owner; 0 if there is none."""
        return max(int(self._version) if self._version.isdecimal() else 0, self.hooks.seen())

    def _start_over(self, now: str, newest: int) -> None:
        versions = {"source": self.source.path, "ours": newest, "theirs": now}
        log.warning("the API server returned to an older state, listing again", extra=versions)
        self._version = ""
        self.hooks.start_over()

    async def _list(self) -> None:
        """List the whole source, and drop what it no longer contains.

        A list that expires between two chunks starts again with larger ones, which need fewer
        requests. It is never one answer: 150,000 pods are 1.2 GB.
        """
        for growth in CHUNK_GROWTH[:-1]:
            with suppress(GoneError):
                return await self._list_once(growth * self._timing.chunk_limit)
        return await self._list_once(CHUNK_GROWTH[-1] * self._timing.chunk_limit)

    async def _list_once(self, limit: int) -> None:
        """List in chunks of `limit` objects, or of fewer large ones."""
        chunks = ChunkedList(self._client, self.source, limit)
        gone = set(self._store.items)  # shares the keys: to free 150,000 others takes 40 ms
        newest = self._newest()  # before the server is asked: it may go on meanwhile
        version = await self._take_chunk(chunks, gone, newest)
        while not chunks.ended:
            version = await self._take_chunk(chunks, gone)
        await self._in_slices(tuple(gone), lambda key: self._store.drop(key, version))
        self.hooks.listed(version)
        self._version, self._short_watches = version, 0
        self.heard_at, self.problem = self._timing.clock.monotonic(), None
        self.synced.set()
        self._progress.set()

    async def _take_chunk(self, chunks: ChunkedList, gone: set[Key], newest: int = 0) -> str:
        """Store one chunk, and take it out of `gone`; it is freed before the next one is read.

        Returns:
            The version of the list.
        """
        chunk = await chunks.read()
        if newest and is_older(chunk.resource_version, str(newest)):
            self._start_over(chunk.resource_version, newest)
        items = [item for item in chunk.items if self._timing.takes(item)]
        gone.difference_update(map(Key.of, items))
        await self._in_slices(items, self._store.put)
        return chunk.resource_version

    async def _in_slices(
        self, objects: Sequence[E], take_in: Callable[[E], Change[T] | None]
    ) -> None:
        """Take in and report some objects at a time; other tasks get turns in between."""
        slices = Slices(self._timing.clock)
        taken: list[Change[T] | None] = []
        for one in objects:
            taken.append(take_in(one))
            if len(taken) == BATCH or slices.over():
                self._report(taken)
                taken = []
                await slices.rest()
        self._report(taken)

    async def _watch(self) -> None:
        """Apply changes until the server ends the watch."""
        timing, clock = self._watch_timing(), self._timing.clock
        begun, delivered = clock.monotonic(), False
        batches = watch(self._client.connection, self.source, self._version, timing)
        with suppress(TimeoutError):  # `catch_up` has ended it
            async with self._until_ended(), aclosing(batches):
                async for events in batches:
                    self.problem = self.behind_since = None
                    self.heard_at = clock.monotonic()
                    if events:
                        delivered = True
                        self._backoff.reset()
                        await self._in_slices(events, self._apply)
                        self._progress.set()
        self._fell_behind()
        self._doubtful = not delivered
        if not delivered and clock.monotonic() - begun < self._timing.very_short_seconds:
            most_seconds = self._timing.backoff_cap_seconds
            await self._back_off(self._backoff.next_seconds(most_seconds=most_seconds))

    @asynccontextmanager
    async def _until_ended(self) -> AsyncIterator[None]:
        """Let `catch_up` end what runs meanwhile, with a TimeoutError, and nothing later."""
        try:
            async with asyncio.timeout(None) as self._watching:
                yield
        finally:
            self._watching = None

    def _watch_timing(self) -> WatchTiming:
        is_behind = self._is_behind()
        self._short_watches += is_behind
        return self._timing.watch(self._random, is_short=is_behind)

    def _fell_behind(self) -> None:
        if self.behind_since is None:
            self.behind_since = self._timing.clock.monotonic()

    def _apply(self, event: WatchEvent) -> Change[T] | None:
        self._version = event.body["metadata"]["resourceVersion"]
        if event.kind == BOOKMARK or not self._timing.takes(event.body):
            return None
        if event.kind == DELETED:
            return self._store.drop(Key.of(event.body), self._version)
        return self._store.put(event.body)

    def _report(self, changes: Sequence[Change[T] | None]) -> None:
        real = [change for change in changes if change is not None]
        if real and self._on_change is not None:
            self._on_change(real)
