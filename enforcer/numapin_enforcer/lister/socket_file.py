"""The socket of numapin's own: root's alone, replaced when it is stale, removed at the end."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
PROBE_SECONDS: Final = 1.0


class SocketFileError(Exception):
    """The socket cannot be made."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"cannot serve on {path}: {problem}")


@contextmanager
def listening(path: Path, most_waiting: int) -> Iterator[socket.socket]:
    """A socket that listens on `path` for the duration of the context.

    It is made under another name and renamed: nobody finds it with other rights.

    Raises:
        SocketFileError: another program serves there, the file is no socket, or the kernel refuses.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with socket.socket(socket.AF_UNIX) as made:
        try:
            path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            _check_stale(path)
            partial.unlink(missing_ok=True)
            made.bind(str(partial))
            partial.chmod(MODE)
            made.listen(most_waiting)
            made.setblocking(False)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise SocketFileError(path, error.strerror or str(error)) from error
        ours = inode(path)
        try:
            yield made
        finally:
            if inode(path) == ours:
                path.unlink(missing_ok=True)


def inode(path: Path) -> int:
    """Identifies the file that is there now; 0 if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _check_stale(path: Path) -> None:
    """Return if nobody serves there.

    Raises:
        SocketFileError: somebody does, or the file is no socket.
        OSError: the file cannot be read.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketFileError(path, "there is a file that is no socket; name another one")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
    raise SocketFileError(path, "another program serves there; name another socket")
