"""One inotify instance of the kernel (inotify(7))."""

import ctypes
import errno
import os
import select
from typing import Final

_HINTS: Final = {
    errno.ENOSPC: "; raise fs.inotify.max_user_watches",
    errno.EMFILE: "; raise fs.inotify.max_user_instances",
}

_READ_BYTES: Final = 64 * 1024


class Inotify:
    """An instance that may be opened later: its descriptor for `select` is there from the start.

    Raises:
        OSError: this process cannot open more files.
    """

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = -1
        self._readable = select.epoll()
        """Readable when the instance is, which may be created later."""

    def fileno(self) -> int:
        """The descriptor that is readable while events are queued."""
        return self._readable.fileno()

    @property
    def is_open(self) -> bool:
        """Whether there is an instance."""
        return self.descriptor >= 0

    def open(self) -> None:
        """Get an instance, if there is none.

        Raises:
            OSError: the user has no more of them.
        """
        if not self.is_open:
            self.descriptor = self._checked(self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            self._readable.register(self.descriptor, select.EPOLLIN)

    def close(self) -> None:
        """Stop watching."""
        self._readable.close()
        if self.is_open:
            os.close(self.descriptor)
            self.descriptor = -1

    def add(self, path: str, mask: int) -> int:
        """Watch a folder or a file; returns the number of the watch.

        Raises:
            OSError: it is gone, or cannot be watched.
        """
        path_bytes = os.fsencode(path)
        number = self.libc.inotify_add_watch(self.descriptor, path_bytes, ctypes.c_uint32(mask))
        return self._checked(number)

    def remove(self, watch: int) -> None:
        """End a watch. On cgroupfs, unlike elsewhere, one outlives its folder, and its inode."""
        self.libc.inotify_rm_watch(self.descriptor, watch)  # fails if it has ended

    def read(self) -> bytes:
        """Take events off the queue: never waits.

        Raises:
            BlockingIOError: there is none.
            OSError: the kernel failed otherwise.
        """
        return os.read(self.descriptor, _READ_BYTES)

    @staticmethod
    def _checked(answer: int) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            hint = _HINTS.get(number, "")
            raise OSError(number, f"inotify: {os.strerror(number)}{hint}")
        return answer
