"""Edge: writes that move memory pages, in a thread, one batch at a time."""

import asyncio
import logging
import time
from typing import Final

from numapin_enforcer.apply import Failure, apply
from numapin_enforcer.cgroups import CgroupTree, Write

LOG: Final = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 1.0
"""Moves that are done sooner are not worth a word in the status."""

RETRY_SECONDS: Final = 5.0
"""How long to leave memory where it is when the kernel would not move it."""


class Mover:
    """Moves memory; the loop goes on meanwhile and must not ask for the same again."""

    def __init__(self, wake: asyncio.Event, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._wake, self._patience_seconds = wake, patience_seconds
        self._batch: tuple[tuple[Write, ...], CgroupTree] | None = None
        self._changed = asyncio.Event()
        self._not_before = 0.0
        self.failures: tuple[Failure, ...] = ()
        """What the kernel refused of the last batch."""
        self.slow: tuple[Write, ...] = ()
        """The batch under way, once it takes long; nothing can stop the kernel in it."""

    def move(self, writes: tuple[Write, ...], tree: CgroupTree) -> None:
        """Start moving, unless something is being moved already, or just could not be."""
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
                self._batch, self.slow = None, ()
                if self.failures:
                    self._not_before = time.monotonic() + RETRY_SECONDS
                self._wake.set()

    async def _patiently(self, writes: tuple[Write, ...], tree: CgroupTree) -> tuple[Failure, ...]:
        task = asyncio.create_task(asyncio.to_thread(apply, writes, tree), name="move-memory")
        done, _ = await asyncio.wait({task}, timeout=self._patience_seconds)
        if not done:
            self.slow = writes
            LOG.info("moving memory takes long", extra={"cgroups": len(writes)})
            self._wake.set()
        return (await task).failed
