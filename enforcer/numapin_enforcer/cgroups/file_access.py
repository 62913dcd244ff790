"""Reads and writes single files and folders of cgroups."""

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import DENIED, CgroupError, CgroupRefusedError, error_of

_NO_CHILDREN: Final = 2
"""The links of a folder without subfolders, in cgroupfs as in every file system that counts."""

EXCLUSIVE: Final = "cpuset.cpu_exclusive"

_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_ENTER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


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
        if os.lstat(path).st_nlink == _NO_CHILDREN:
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
    content = read_bytes(path)
    try:
        return content.decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise _not_understood(path, error) from error


def parse_cpus(path: str, text: bytes) -> CpuSet:
    """The CPUs in the content of a file.

    Raises:
        CgroupError: it is no list of CPUs; the error names `path`.
    """
    try:
        return _cpus(text)
    except ValueError as error:
        raise _not_understood(path, error) from error


def parse_mems(path: str, text: bytes) -> MemSet:
    """The NUMA nodes in the content of a file; see `parse_cpus`."""
    try:
        return _mems(text)
    except ValueError as error:
        raise _not_understood(path, error) from error


def parse_number(path: str, text: str) -> int:
    """The number in the text of a file; see `parse_cpus`."""
    try:
        return int(text)
    except ValueError as error:
        raise _not_understood(path, error) from error


@lru_cache(maxsize=4096)
def _cpus(text: bytes) -> CpuSet:
    return CpuSet.parse(text.decode("ascii").strip())


@lru_cache(maxsize=4096)
def _mems(text: bytes) -> MemSet:
    return MemSet.parse(text.decode("ascii").strip())


def _not_understood(path: str, error: ValueError) -> CgroupError:
    """The error for content that no kernel writes, such as that of a file of others."""
    return CgroupError(path, None, errno.EILSEQ, f"it is not what the kernel writes: {error}")


def read_bytes(path: str) -> bytes:
    """The content of a cgroup's file as it is; see `read_file`."""
    try:
        file = os.open(path, _READ)
        try:
            return os.read(file, 65536)
        finally:
            os.close(file)
    except OSError as error:
        raise error_of(path, None, error) from error


def read_files(folder: str, names: Sequence[str]) -> tuple[list[bytes], bool]:
    """The contents of some files of one cgroup, and whether it may have children.

    A rescan does this for each cgroup: the folder's path is looked up once.

    Raises:
        CgroupVanishedError: the cgroup is gone, or has no such file.
        CgroupError: a file could not be read.
    """
    contents: list[bytes] = []
    try:
        entered = os.open(folder, _ENTER)
        try:
            for name in names:
                file = os.open(name, _READ, dir_fd=entered)
                try:
                    contents.append(os.read(file, 65536))
                finally:
                    os.close(file)
            return contents, os.fstat(entered).st_nlink != _NO_CHILDREN
        finally:
            os.close(entered)
    except OSError as error:
        path = f"{folder}/{names[min(len(contents), len(names) - 1)]}"
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


def raise_if_taken(mount: str, path: str, cpus: CpuSet) -> None:
    """On v1 no cpuset may have a CPU that one beside it has with `cpuset.cpu_exclusive`.

    Source: cpuset(7), "Exclusive cpusets".

    Args:
        mount: of the cpuset controller.
        path: the cgroup for which the kernel refuses `cpus` (EINVAL).
        cpus: what was written.

    Raises:
        CgroupRefusedError: a cgroup beside it has some of them, such as one of `cset shield`.
    """
    if found := taken_beside(f"{mount}/{path}", cpus, _shielded):
        other, taken = found
        why = f"the cpuset {other} has CPUs {taken} exclusively ({EXCLUSIVE}, EINVAL)"
        do = "remove it (cset shield --reset, if that made it), or set that to 0"
        file = f"{mount}/{path}/cpuset.cpus"
        raise CgroupRefusedError(file, str(cpus), errno.EINVAL, f"{why}; {do}")


def taken_beside(
    folder: str, cpus: CpuSet, has: Callable[[str], CpuSet]
) -> tuple[str, CpuSet] | None:
    """The first cgroup beside one that has some CPUs, and which; one that cannot be read has none.

    Args:
        folder: the cgroup.
        cpus: the CPUs.
        has: reads those of a cgroup that count; may raise CgroupError.
    """
    above, _, own = folder.rpartition("/")
    for name in list_folders(above):
        other, taken = f"{above}/{name}", CpuSet()
        with suppress(CgroupError):
            taken = cpus & has(other) if name != own else taken
        if taken:
            return other, taken
    return None


def _shielded(folder: str) -> CpuSet:
    if read_file(f"{folder}/{EXCLUSIVE}") != "1":
        return CpuSet()
    return CpuSet.parse(read_file(f"{folder}/cpuset.cpus"))
