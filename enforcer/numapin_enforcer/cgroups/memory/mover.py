"""Writes that move memory pages, in a thread, one batch at a time."""

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, internal_error
from numapin_api.cpuset import MemSet
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.cgroups.apply import Failure, Outcome, apply
from numapin_enforcer.cgroups.memory.binding import BindingTree, MemoryFiles, SavedMems
from numapin_enforcer.cgroups.memory.writes_during_moves import MoveGate
from numapin_enforcer.cgroups.write import Value, Write

LOG: Final = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""A batch that takes longer is slow, and reported in the status."""

RETRY_SECONDS: Final = 5.0
"""The pause after a batch in which the kernel refused a write."""

_Wanted = frozenset[tuple[str, Value]]
"""Path and value of each write that must be made."""


class _Batch:
    """Writes that one thread makes in order; the event loop may change what is wanted meanwhile.

    The lock guards everything that both sides use.
    """

    def __init__(self, writes: tuple[Write, ...], wanted: _Wanted) -> None:
        self._lock = threading.Lock()
        self._writes, self._left, self._wanted = writes, writes, wanted
        self._on_progress: Callable[[], object] | None = None

    @property
    def left(self) -> tuple[Write, ...]:
        """The write under way and those after it."""
        with self._lock:
            return self._left

    def want(self, wanted: _Wanted) -> None:
        """Skip from now on every write that is not in `wanted`."""
        with self._lock:
            self._wanted = wanted

    def report(self, on_progress: Callable[[], object]) -> None:
        """Call `on_progress` from the thread whenever one more write is made."""
        with self._lock:
            self._on_progress = on_progress

    def due(self) -> Iterator[Write]:
        """For the thread: each write that is still wanted when its turn comes."""
        for index, write in enumerate(self._writes):
            with self._lock:
                self._left = self._writes[index:]
                on_progress, is_wanted = self._on_progress, _key(write) in self._wanted
            if on_progress is not None:
                on_progress()
            if is_wanted:
                yield write


class MemoryMover:
    """Moves memory pages in a thread. What is wanted later replaces what is left of a batch."""

    def __init__(
        self,
        wake: asyncio.Event,
        found: SavedMems,
        clock: Clock | None = None,
        sysfs: Path = Path("/sys"),
        most_moved_bytes: float = math.inf,
    ) -> None:
        """Make ready to move.

        Args:
            wake: set when `slow`, `failures`, `found_mems` or the obstacles have changed.
            found: what cgroups had before they were bound.
            clock: the time.
            sysfs: says how much memory each NUMA node has free.
            most_moved_bytes: how much memory of one cgroup may be moved.
        """
        self._wake, self._clock = wake, clock or SystemClock()
        self._found, self._sysfs, self._most_moved_bytes = found, sysfs, most_moved_bytes
        self.gate = MoveGate(left_moving=bool(found.mems))
        self._restored: frozenset[str] = frozenset()
        self._wanted: _Wanted = frozenset()
        self._batch: _Batch | None = None
        self._tree: MemoryFiles | None = None
        self._not_before_seconds = self._patient_until_seconds = 0.0
        self._is_slow = False
        self.failures: tuple[Failure, ...] = ()
        """The writes of the last batch that the kernel refused."""
        self._worker = Worker("move-memory", self._move, wake=wake.set, clock=self._clock)

    @property
    def finishes_soon(self) -> bool:
        """Whether memory is being moved and has not taken long yet: the status can wait for it."""
        quick = self._batch is not None and not self._is_slow
        return quick and self._clock.monotonic() < self._patient_until_seconds

    @property
    def slow(self) -> tuple[Write, ...]:
        """What is left of a batch that takes long. The kernel cannot be stopped in the first."""
        return self._batch.left if self._batch is not None and not self.finishes_soon else ()

    def obstacles(self) -> tuple[Obstacle, ...]:
        """An unexpected error of the last batch; the next pass asks for its moves again."""
        problem = self._worker.problem
        return (internal_error("moving memory", problem),) if problem is not None else ()

    @property
    def found_mems(self) -> Mapping[str, MemSet]:
        """What bound cgroups had before, by path; an empty set is "as the parent"."""
        return self._found.mems

    def forget(self, restored: frozenset[str]) -> None:
        """Cgroups of `found_mems` that are gone, or have again what they had; returns at once."""
        self._restored = restored & self._found.mems.keys()
        if self._restored:
            self._worker.request()

    def want(self, writes: tuple[Write, ...], tree: MemoryFiles) -> None:
        """Start moving, unless a batch is under way or failed a moment ago; returns at once.

        Writes of the batch under way that are not among `writes` are skipped.
        """
        wanted = frozenset(map(_key, writes))
        if wanted - self._wanted:
            self._patient_until_seconds = self._clock.monotonic() + PATIENCE_SECONDS
        self._wanted = wanted
        if self._batch is not None:
            self._batch.want(wanted)
        if not writes:
            self.failures = ()
        elif self._batch is None and self._clock.monotonic() >= self._not_before_seconds:
            self._batch, self._tree = _Batch(writes, wanted), tree
            self._worker.request()

    async def run(self) -> None:
        """Move memory until cancelled."""
        await self._worker.run()

    async def _move(self) -> None:
        if self._restored:
            with suppress(OSError):  # restoring them again changes nothing
                await asyncio.to_thread(self._found.drop, self._restored)
        if self._batch is None or self._tree is None:
            return
        try:
            self.failures = (await self._apply(self._batch, self._tree)).failed
        finally:
            self._batch, self._tree, self._is_slow = None, None, False
        if self.failures:
            self._not_before_seconds = self._clock.monotonic() + RETRY_SECONDS
        self._wake.set()

    async def _apply(self, batch: _Batch, files: MemoryFiles) -> Outcome:
        tree = BindingTree(files, self._found, self.gate, self._sysfs, self._most_moved_bytes)
        moving, ended = _in_thread(lambda: apply(batch.due(), tree)), asyncio.Event()
        moving.add_done_callback(lambda _: ended.set())
        if not await self._clock.wait(ended, PATIENCE_SECONDS):
            self._is_slow = True
            wake = partial(asyncio.get_running_loop().call_soon_threadsafe, self._wake.set)
            batch.report(wake)
            LOG.info("moving memory takes long", extra={"cgroups": len(batch.left)})
            self._wake.set()
        return await moving


def _key(write: Write) -> tuple[str, Value]:
    return write.path, write.value


def _in_thread(work: Callable[[], Outcome]) -> asyncio.Future[Outcome]:
    """Do `work` in a thread that the process's exit does not wait for: it may take minutes."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Outcome] = loop.create_future()

    def resolve(outcome: Outcome | None, error: BaseException | None) -> None:
        if answer.cancelled():
            return
        if error is not None:
            answer.set_exception(error)
        elif outcome is not None:
            answer.set_result(outcome)

    def run() -> None:
        outcome, problem = None, None
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001 (raised where the answer is awaited)
            problem = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(resolve, outcome, problem)

    threading.Thread(target=run, name="move-memory", daemon=True).start()
    return answer
