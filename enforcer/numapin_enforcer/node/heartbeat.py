"""Shows the standby that the enforcer's loop makes progress: a stamp in memory, beside the lock."""

import logging
import os
import struct
from pathlib import Path
from typing import Final, NoReturn

from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.node.lock import NodeLock, keep_lock

LOG: Final = logging.getLogger(__name__)

FILE_NAME: Final = "heartbeat"

BEAT_SECONDS: Final = 1.0
"""How often the loop renews the stamp."""

HUNG_SECONDS: Final = 4.0
"""A process that has the lock and an older stamp is stopped, or waits in the kernel."""

_STAMP: Final = struct.Struct("<d")
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Heartbeat:
    """The time of the last beat, on the clock that all processes of the node share.

    The folder must be in memory (tmpfs): a disk that hangs must not hang the loop. Without a folder
    nothing is written, and nobody knows the age.
    """

    def __init__(self, run_dir: Path | None, clock: Clock | None = None) -> None:
        self._path = run_dir / FILE_NAME if run_dir is not None else None
        self._clock = clock or SystemClock()
        self._file = -1

    def beat(self) -> None:
        """Renew the stamp.

        Raises:
            OSError: the file cannot be written.
        """
        if self._path is None:
            return
        if self._file < 0:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        os.pwrite(self._file, _STAMP.pack(self._clock.monotonic()), 0)

    def age_seconds(self) -> float | None:
        """How long ago the last beat was; None if that is not known."""
        if self._path is None:
            return None
        try:
            file = os.open(self._path, os.O_RDONLY | _FLAGS)
            try:
                (at,) = _STAMP.unpack(os.pread(file, _STAMP.size, 0))
            finally:
                os.close(file)
        except (OSError, struct.error):
            return None
        age = self._clock.monotonic() - at
        return age if age >= 0 else None  # a stamp of an earlier boot

    def is_stale(self) -> bool:
        """Whether the last beat was too long ago for a loop that makes progress."""
        age = self.age_seconds()
        return age is not None and age > HUNG_SECONDS


async def keep_alive(heartbeat: Heartbeat, lock: NodeLock, clock: Clock | None = None) -> NoReturn:
    """Beat while the event loop runs, and keep the lock.

    Raises:
        LockLostError: another enforcer has the lock.
    """
    clock, problem = clock or SystemClock(), ""
    while True:
        before, problem = problem, ""
        try:
            heartbeat.beat()
        except OSError as error:
            problem = str(error)
            if problem != before:
                LOG.warning("a standby cannot see whether this process hangs", extra={"why": error})
        await keep_lock(lock, clock)
        await clock.sleep(BEAT_SECONDS)
