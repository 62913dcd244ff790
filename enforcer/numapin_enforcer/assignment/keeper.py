"""Edge: keeps the node-local copy, in the background: a disk may be slow."""

import asyncio
import logging
from typing import Final

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_daemon.backoff import Backoff
from numapin_enforcer.assignment.local_copy import Assignment, LocalCopy

LOG: Final = logging.getLogger(__name__)

FIRST_WAIT_SECONDS: Final = 1.0
"""How long to wait at most before a disk that refused is tried again; doubles."""


class LocalCopyWriter:
    """Writes the newest assignment in force to the node."""

    def __init__(self, copy: LocalCopy, kept: Assignment | None, wake: asyncio.Event) -> None:
        self._copy, self._kept, self._newest, self._wake = copy, kept, kept, wake
        self._changed = asyncio.Event()
        self.problem = ""
        """Why the copy is not up to date; empty when it is."""

    def want(self, assignment: Assignment) -> None:
        """Have it kept; returns at once."""
        if assignment is not self._newest:
            self._newest = assignment
            self._changed.set()

    @property
    def restart_spec(self) -> NodeAssignmentSpec | None:
        """What a restart begins with while the newest is being written; None once it is kept.

        None as well while the disk refuses: then that is the problem, and told as such.
        """
        if self.problem or self._newest == self._kept:
            return None
        return self._kept.spec if self._kept is not None else NodeAssignmentSpec()

    async def run(self) -> None:
        """Write what is to be kept, until cancelled; tries again when the disk refuses."""
        backoff = Backoff(base_seconds=FIRST_WAIT_SECONDS, cap_seconds=60.0)
        while True:
            await self._changed.wait()
            self._changed.clear()
            newest = self._newest
            if newest is None or newest == self._kept:
                continue
            try:
                await asyncio.to_thread(self._copy.write, newest)
            except OSError as error:
                self.problem = f"the assignment could not be kept in {self._copy.path}: {error}"
                LOG.warning("the assignment could not be kept", extra={"error": error})
                self._wake.set()
                await asyncio.sleep(backoff.next_seconds())
                self._changed.set()
            else:
                self._kept, self.problem = newest, ""
                backoff.reset()
                self._wake.set()
