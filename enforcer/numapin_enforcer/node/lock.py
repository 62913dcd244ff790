"""Which process writes cgroups on this node: the enforcer while it runs, else its standby."""

import errno
import fcntl
import os
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE_NAME: Final = "writer.lock"

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Without waiting for a writer, if the file is a FIFO."""


class NodeLock:
    """A lock on a file of the node. The kernel releases it when its process ends, however it ends.

    If the process is killed while one of its threads moves memory, it ends once that write is done.
    Reading is enough for a lock, so the file is root's alone: any other user could hold it.
    Source: flock(2).
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE_NAME
        self._file = -1

    def create(self) -> None:
        """Create the file if it does not exist; let only root open it.

        Raises:
            OSError: the folder cannot be written and has no such file.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self.path, _FLAGS | os.O_CREAT, 0o600)
        try:
            with suppress(OSError):  # a read-only folder stays as it is
                self.path.parent.chmod(0o700)
                os.fchmod(file, 0o600)
        finally:
            os.close(file)

    def acquire(self) -> None:
        """Wait until no other process has the lock, and acquire it.

        Raises:
            FileNotFoundError: the file does not exist.
            OSError: the file cannot be opened.
        """
        while True:
            self._open()
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if self.is_current():
                return
            self._close()

    def try_acquire(self) -> bool:
        """Acquire the lock unless another process has it; returns whether we have it now.

        Raises:
            FileNotFoundError: the file does not exist.
            OSError: the file cannot be opened.
        """
        while True:
            self._open()
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self.is_current():
                    return False
            else:
                if self.is_current():
                    return True
            self._close()

    def release(self) -> None:
        """Let another process acquire the lock."""
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def is_current(self) -> bool:
        """Whether the open file is the one that others would open; False if none is open."""
        try:
            named = self.path.stat(follow_symlinks=False)
            return self._file >= 0 and os.path.samestat(named, os.fstat(self._file))
        except FileNotFoundError:
            return False

    def replaced(self) -> bool:
        """Whether the file of a lock that was acquired has been deleted or replaced since."""
        return self._file >= 0 and not self.is_current()

    def _open(self) -> None:
        if self._file >= 0:
            return
        file = os.open(self.path, _FLAGS)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "it is not a regular file", str(self.path))
        self._file = file

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1


class LockWait:
    """Waits for the lock in a thread, so that its caller can do something else meanwhile."""

    def __init__(self, lock: NodeLock, retry_seconds: float) -> None:
        """Args: if the file does not exist yet, look for it again after `retry_seconds`."""
        self._lock, self._retry_seconds = lock, retry_seconds
        self._done, self._error = threading.Event(), OSError()
        self._failed = False
        threading.Thread(target=self._acquire, name="lock", daemon=True).start()

    def acquired(self, timeout_seconds: float | None) -> bool:
        """Whether the lock was acquired within so much time; None waits as long as it takes.

        Raises:
            OSError: the file cannot be opened.
        """
        done = self._done.wait(timeout_seconds)
        if done and self._failed:
            raise self._error
        return done

    def _acquire(self) -> None:
        while True:
            try:
                self._lock.acquire()
            except FileNotFoundError:  # no enforcer has run here yet
                time.sleep(self._retry_seconds)
                continue
            except OSError as error:
                self._error, self._failed = error, True
            self._done.set()
            return
