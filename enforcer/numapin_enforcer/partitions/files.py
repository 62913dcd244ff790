"""Reads and writes the files of partitions, each cgroup by its path from the cpuset mount."""

import errno
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError, CgroupRefusedError, CgroupVanishedError
from numapin_enforcer.cgroups.file_access import read_file, read_files, taken_beside, write_file
from numapin_enforcer.partitions.plan import File, PartitionWrite, State

ISOLATED: Final = "cpuset.cpus.isolated"
_FILES: Final = (File.EXCLUSIVE, File.PARTITION)


class PartitionFiles(Protocol):
    """The kernel's files, or a model of them."""

    def state(self, path: str) -> State:
        """One cgroup.

        Raises:
            CgroupVanishedError: it is gone, or the kernel has no such files.
            CgroupError: it could not be read.
        """
        ...

    def write(self, write: PartitionWrite) -> None:
        """Make one write.

        Raises:
            CgroupError: the kernel refuses it; nothing was changed.
        """
        ...

    def isolated(self) -> CpuSet:
        """The CPUs of all isolated partitions of the machine; none if the kernel does not say."""
        ...


class KernelPartitions:
    """The files below one mount of cgroup v2."""

    def __init__(self, mount: Path) -> None:
        self._mount = mount

    def state(self, path: str) -> State:
        """See `PartitionFiles`."""
        (exclusive, partition), _ = read_files(f"{self._mount}/{path}", _FILES)
        return State(
            CpuSet.parse(exclusive.decode("ascii").strip()), partition.decode("ascii").strip()
        )

    def write(self, write: PartitionWrite) -> None:
        """See `PartitionFiles`."""
        try:
            write_file(f"{self._mount}/{write.path}/{write.file}", write.value)
        except CgroupRefusedError as error:
            if error.number == errno.EINVAL and write.file is File.EXCLUSIVE:
                self._raise_if_taken(write)
            raise

    def _raise_if_taken(self, write: PartitionWrite) -> None:
        """Name the cgroup beside it that has some of these CPUs, which no two may have.

        Source: Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.exclusive".
        """
        folder, cpus = f"{self._mount}/{write.path}", CpuSet.parse(write.value)
        if found := taken_beside(folder, cpus, _exclusive):
            other, taken = found
            why = f"the cgroup {other} has CPUs {taken} exclusively ({File.EXCLUSIVE}, EINVAL)"
            do = "have what made it give them up"
            file = f"{folder}/{write.file}"
            raise CgroupRefusedError(file, write.value, errno.EINVAL, f"{why}; {do}")

    def isolated(self) -> CpuSet:
        """See `PartitionFiles`."""
        with suppress(CgroupError):
            return CpuSet.parse(read_file(f"{self._mount}/{ISOLATED}"))
        return CpuSet()


def _exclusive(folder: str) -> CpuSet:
    return CpuSet.parse(read_file(f"{folder}/{File.EXCLUSIVE}"))


def read_states(files: PartitionFiles, paths: Iterable[str]) -> dict[str, State]:
    """Those of `paths` that exist.

    Raises:
        CgroupError: a file could not be read.
    """
    found: dict[str, State] = {}
    for path in paths:
        with suppress(CgroupVanishedError):
            found[path] = files.state(path)
    return found


def make(files: PartitionFiles, writes: Iterable[PartitionWrite]) -> Mapping[str, CgroupError]:
    """Make the writes; returns those that were refused, by cgroup.

    What relies on a refused write is still tried: the kernel then calls the partition invalid, and
    says why. A cgroup that is gone is no failure.
    """
    refused: dict[str, CgroupError] = {}
    for write in writes:
        try:
            files.write(write)
        except CgroupVanishedError:
            continue
        except CgroupError as error:
            refused.setdefault(write.path, error)
    return refused
