"""Mounts below folders of the lab."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
MNT_DETACH = 2


def below(mounts: str, folders: Sequence[Path]) -> list[str]:
    """Mount points in or under `folders`, the last mounted first; `mounts` is as in mtab(5)."""
    found = []
    for line in mounts.splitlines():
        # Source: getmntent(3): blanks and backslashes are written as octal escapes.
        target = line.split()[1].encode().decode("unicode_escape")
        if any(Path(target).is_relative_to(folder) for folder in folders):
            found.append(target)
    return found[::-1]


def unmount_below(*folders: Path) -> None:
    """Unmount everything in or under `folders`.

    Raises:
        OSError: the kernel refuses one of them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for target in below(MOUNTS.read_text(), folders):
        if libc.umount2(os.fsencode(target), MNT_DETACH) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), target)


def file_system(mounts: str, folder: Path) -> str:
    """The type of file system that `folder` is on, e.g. `ext4`, `overlay`."""
    kind, depth = "", -1
    for line in mounts.splitlines():
        _, target, found, *_ = line.split()
        path = Path(target.encode().decode("unicode_escape"))
        if folder.is_relative_to(path) and len(path.parts) >= depth:
            kind, depth = found, len(path.parts)
    return kind
