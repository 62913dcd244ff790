"""Files that are replaced as a whole, also when the power fails, and read within bounds."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read(path: Path, *, most_bytes: int) -> bytes:
    """The content of a small regular file; never waits for a writer.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read, is larger, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes} bytes", str(path))
    return content


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file, or create it; its folder must exist.

    After a power cut the file has the old content or the new one, never a part of it. A reader
    never sees a part of it either. The new content is first written to a file of the same name
    with the suffix `.new`, so a crash leaves one such file at most; it is locked meanwhile.

    Args:
        path: the file.
        data: all of its content.
        mode: its permission bits, whatever the umask.

    Raises:
        BlockingIOError: another process is replacing the file at this moment.
        OSError: the file could not be written and has the old content; or it has the new content,
            and a power cut may still bring the old one back.
    """
    temporary = path.with_suffix(".new")
    with _locked(temporary) as descriptor:
        try:
            os.ftruncate(descriptor, 0)
            os.fchmod(descriptor, mode)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(data)
            os.fsync(descriptor)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file for writing, or create it, and lock it; the kernel unlocks it if we die."""
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_open_as(path, descriptor):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _is_open_as(path: Path, descriptor: int) -> bool:
    """False if another process has renamed or deleted the file since it was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable. Source: fsync(2), "does not necessarily ensure"."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
