"""Edge: who writes cgroups on this node: the enforcer while it lives, else its standby."""

import fcntl
import os
from pathlib import Path
from typing import Final

FILE_NAME: Final = "writer.lock"


class NodeLock:
    """A lock on a file of the node, which the kernel takes back when its holder ends, however.

    A holder that is killed while one of its threads moves memory ends once that write is done.
    Source: flock(2).
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE_NAME
        self._file = -1

    def create(self) -> None:
        """Make the file if it is not there.

        Raises:
            OSError: the folder cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))

    def acquire(self) -> None:
        """Wait until nobody else has it, and have it.

        Raises:
            FileNotFoundError: it was never made.
            OSError: the file cannot be opened.
        """
        self._open()
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Have it if nobody else has; says whether that is so.

        Raises:
            FileNotFoundError: it was never made.
            OSError: the file cannot be opened.
        """
        self._open()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let others have it."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _open(self) -> None:
        if self._file < 0:
            # Reading is enough for a lock: a standby may have the folder mounted read-only.
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
