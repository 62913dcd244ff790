"""All access to cgroup files and folders; an errno becomes a typed error."""

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_enforcer.cgroups.tree import (
    CgroupError,
    CgroupReadOnlyError,
    CgroupRefusedError,
    CgroupVanishedError,
)

_MEANINGS: Final[Mapping[int, str]] = {
    errno.ERANGE: "it names a CPU or NUMA node that this kernel cannot have (ERANGE)",
    errno.EINVAL: "it is not a list, or names a CPU or NUMA node that does not exist (EINVAL)",
    errno.ENOSPC: "the set would be empty while the cgroup has tasks (ENOSPC)",
    errno.EBUSY: "a descendant still has CPUs or NUMA nodes that this would remove (EBUSY)",
    errno.EACCES: "the parent does not have all of these CPUs or NUMA nodes (EACCES)",
    errno.ENOENT: "the cgroup is gone (ENOENT)",
    errno.ENODEV: "the cgroup is gone (ENODEV)",
    errno.EROFS: "it is mounted read-only (EROFS); mount the host's cgroups writable",
    errno.EPERM: "permission denied (EPERM); run as root with the host's cgroups",
}
_VANISHED: Final = frozenset({errno.ENOENT, errno.ENODEV})
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EPERM})
_REFUSED: Final = frozenset({errno.ERANGE, errno.EINVAL, errno.ENOSPC, errno.EBUSY, errno.EACCES})


def read_controllers(folder: Path) -> list[str]:
    """The v2 controllers of a cgroup; none if the folder is not a v2 cgroup."""
    try:
        return (folder / "cgroup.controllers").read_text().split()
    except OSError:
        return []


def find_v1_mount(folder: Path, controller: str, proof: str) -> Path | None:
    """The mount of one v1 controller below `folder`, recognised by its file `proof`.

    Controllers may share a mount, as in `cpu,cpuacct`.
    """
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if controller in path.name.split(",") and (path / proof).exists():
                return path
    return None


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder."""
    return path.is_dir()


def list_folders(path: str) -> list[str]:
    """The names of a cgroup's children, sorted; links are not followed.

    Raises:
        CgroupVanishedError: the cgroup is gone.
        CgroupError: the folder could not be read.
    """
    try:
        # Two links mean no subfolder, in cgroupfs as in every file system that counts them.
        if Path(path).stat(follow_symlinks=False).st_nlink == 2:
            return []
        with os.scandir(path) as entries:
            return sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
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
        CgroupRefusedError: the kernel refuses the value.
        CgroupReadOnlyError: the file may not be written.
        CgroupError: the kernel failed otherwise.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.EACCES:
            meaning = "permission denied (EACCES); run as root"
            raise CgroupReadOnlyError(path, text, errno.EACCES, meaning) from error
        raise error_of(path, text, error) from error
    try:
        # The newline makes a write of an empty set: writing zero bytes does nothing.
        os.write(file, f"{text}\n".encode("ascii"))
    except OSError as error:
        raise error_of(path, text, error) from error
    finally:
        os.close(file)


def error_of(path: str, text: str | None, error: OSError) -> CgroupError:
    """The error for an errno; `text` is what was written, None for a read."""
    number = error.errno or 0
    meaning = _MEANINGS.get(number) or f"{error.strerror} ({errno.errorcode.get(number, number)})"
    if number in _VANISHED:
        return CgroupVanishedError(path, text, number, meaning)
    if number in _READ_ONLY:
        return CgroupReadOnlyError(path, text, number, meaning)
    if number in _REFUSED and text is not None:
        return CgroupRefusedError(path, text, number, meaning)
    return CgroupError(path, text, number, meaning)
