"""Reads and writes single files and folders of cgroups."""

import errno
import os
from itertools import islice
from pathlib import Path

from numapin_enforcer.cgroups.errors import DENIED, CgroupRefusedError, error_of


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder."""
    return path.is_dir()


def list_folders(path: str, most: int | None = None) -> list[str]:
    """The names of a cgroup's children, sorted; links are not followed.

    Args:
        path: the cgroup's folder.
        most: list so many at most, whichever the kernel names first; None is no limit.

    Raises:
        CgroupVanishedError: the cgroup is gone.
        CgroupError: the folder could not be read.
    """
    try:
        # Two links mean no subfolder, in cgroupfs as in every file system that counts them.
        if Path(path).stat(follow_symlinks=False).st_nlink == 2:
            return []
        with os.scandir(path) as entries:
            names = (one.name for one in entries if one.is_dir(follow_symlinks=False))
            return sorted(islice(names, most))
    except OSError as error:
        raise error_of(path, None, error) from error


def read_file(path: str) -> str:
    """The text of a cgroup's file, read in one call.

    Raises:
        CgroupVanishedError: the cgroup is gone, or has no such file.
        CgroupError: the file could not be read.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return os.read(file, 65536).decode("ascii").strip()
        finally:
            os.close(file)
    except OSError as error:
        raise error_of(path, None, error) from error


def write_file(path: str, text: str) -> None:
    """Write to a cgroup's file; if this raises, nothing was changed.

    Raises:
        CgroupVanishedError: the cgroup is gone, or has no such file.
        CgroupRefusedError: the kernel refuses the value, or this file may not be written.
        CgroupReadOnlyError: the whole mount is read-only.
        CgroupError: the kernel failed otherwise.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.EACCES:
            raise CgroupRefusedError(path, text, errno.EACCES, DENIED) from error
        raise error_of(path, text, error) from error
    try:
        # The newline makes a write of an empty set: writing zero bytes does nothing.
        os.write(file, f"{text}\n".encode("ascii"))
    except OSError as error:
        raise error_of(path, text, error) from error
    finally:
        os.close(file)
