"""Which process writes cgroups on this node: the enforcer while it runs, else its standby."""

import asyncio
import fcntl
import logging
import os
from pathlib import Path
from typing import Final

from numapin_daemon.clock import Clock, SystemClock

LOG: Final = logging.getLogger(__name__)

FILE_NAME: Final = "writer.lock"

POLL_SECONDS: Final = 0.002
POLLS: Final = 1000
"""How often to try to acquire the lock: a standby releases it within milliseconds."""


class NodeLock:
    """A lock on a file of the node. The kernel releases it when its process ends, however it ends.

    If the process is killed while one of its threads moves memory, it ends once that write is done.
    Source: flock(2).
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE_NAME
        self._file = -1

    def create(self) -> None:
        """Create the file if it does not exist.

        Raises:
            OSError: the folder cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))

    def acquire(self) -> None:
        """Wait until no other process has the lock, and acquire it.

        Raises:
            FileNotFoundError: the file was never created.
            OSError: the file cannot be opened.
        """
        self._open()
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Acquire the lock unless another process has it; returns whether we have it now.

        Raises:
            FileNotFoundError: the file was never created.
            OSError: the file cannot be opened.
        """
        self._open()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let another process acquire the lock."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _open(self) -> None:
        if self._file < 0:
            # Reading is enough for a lock: a standby may have the folder mounted read-only.
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)


async def acquire_from_standby(lock: NodeLock, clock: Clock | None = None) -> bool:
    """Acquire the lock once the standby releases it; False if an enforcer has it.

    Raises:
        FileNotFoundError: the file was never created.
        OSError: the file cannot be opened.
    """
    clock = clock or SystemClock()
    for _ in range(POLLS):
        if lock.try_acquire():
            return True
        await clock.sleep(POLL_SECONDS)
    return False


async def wait_for_lock(lock: NodeLock, ended: asyncio.Event, clock: Clock | None = None) -> None:
    """Return once no other enforcer runs on this node, or `ended` is set.

    If the lock file cannot be created, neither can the local copy, and no standby acts.
    """
    try:
        lock.create()
        while not ended.is_set() and not await acquire_from_standby(lock, clock):
            LOG.warning("another enforcer runs on this node", extra={"lock": lock.path})
    except OSError as error:
        LOG.warning("the node's lock cannot be taken", extra={"lock": lock.path, "error": error})
