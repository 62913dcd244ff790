"""Edge: writes that move memory pages, in a thread, one batch at a time."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from numapin_enforcer.cgroups.apply import Failure, Outcome, apply
from numapin_enforcer.cgroups.tree import CgroupTree, Value, Write

LOG: Final = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""Moves that are done sooner are not worth a word in the status."""

RETRY_SECONDS: Final = 5.0
"""How long to leave memory where it is when the kernel would not move it."""


class Mover:
    """Moves memory; the loop goes on meanwhile, and what it asks for then replaces what is left."""

    def __init__(self, wake: asyncio.Event, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._wake, self._patience_seconds = wake, patience_seconds
        self._batch: tuple[tuple[Write, ...], CgroupTree] | None = None
        self._wanted: frozenset[tuple[str, Value]] = frozenset()
        self._left: tuple[Write, ...] = ()
        self._changed = asyncio.Event()
        self._not_before = 0.0
        self._patient_until = 0.0
        self._is_slow = False
        self.failures: tuple[Failure, ...] = ()
        """What the kernel refused of the last batch."""

    @property
    def settling(self) -> bool:
        """Whether memory is being moved and will have been at once: where it is then is news."""
        quick = self._batch is not None and not self._is_slow
        return quick and time.monotonic() < self._patient_until

    @property
    def slow(self) -> tuple[Write, ...]:
        """What is left of the batch under way, once it takes long.

        Nothing can stop the kernel in the first of them.
        """
        return self._left if self._is_slow else ()

    def move(self, writes: tuple[Write, ...], tree: CgroupTree) -> None:
        """Start moving, unless something just could not be moved, or is being moved already.

        What is not in `writes` any more is left out of the batch under way.
        """
        wanted = frozenset((one.path, one.value) for one in writes)
        if wanted - self._wanted:
            self._patient_until = time.monotonic() + self._patience_seconds
        self._wanted = wanted
        if not writes:
            self.failures = ()
        elif self._batch is None and time.monotonic() >= self._not_before:
            self._batch = (writes, tree)
            self._changed.set()

    async def run(self) -> None:
        """Move what is asked for, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._batch is not None:
                self.failures = await self._patiently(*self._batch)
                self._batch, self._left, self._is_slow = None, (), False
                if self.failures:
                    self._not_before = time.monotonic() + RETRY_SECONDS
                self._wake.set()

    async def _patiently(self, writes: tuple[Write, ...], tree: CgroupTree) -> tuple[Failure, ...]:
        tell = partial(asyncio.get_running_loop().call_soon_threadsafe, self._wake.set)
        moving = _in_thread(lambda: apply(self._due(writes, tell), tree))
        done, _ = await asyncio.wait({moving}, timeout=self._patience_seconds)
        if not done:
            self._is_slow = True
            LOG.info("moving memory takes long", extra={"cgroups": len(writes)})
            self._wake.set()
        return (await moving).failed

    def _due(self, writes: tuple[Write, ...], tell: Callable[[], object]) -> Iterator[Write]:
        """Those that are still wanted when their turn comes; `tell` whenever one more is made."""
        for place, write in enumerate(writes):
            self._left = writes[place:]
            if self._is_slow:
                tell()
            if (write.path, write.value) in self._wanted:
                yield write


def _in_thread(work: Callable[[], Outcome]) -> asyncio.Future[Outcome]:
    """Do `work` in a thread that our own end does not wait for: the kernel may take minutes."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome | None, error: BaseException | None) -> None:
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
        except BaseException as error:  # noqa: BLE001 (whoever waits for the answer gets it)
            problem = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, outcome, problem)

    threading.Thread(target=run, name="move-memory", daemon=True).start()
    return answer
