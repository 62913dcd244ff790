"""The cgroup file system: cpuset.cpus, cpuset.mems and CFS quotas on cgroup v1 and v2."""

import errno
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupReadOnlyError, CgroupVanishedError
from numapin_enforcer.cgroups.file_access import list_folders, read_file, write_file
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, contains
from numapin_enforcer.cgroups.write import Quota, Write

_ASKED: Final = ("cpuset.cpus", "cpuset.mems")
_EFFECTIVE: Final = {
    Version.V1: ("cpuset.effective_cpus", "cpuset.effective_mems"),
    Version.V2: ("cpuset.cpus.effective", "cpuset.mems.effective"),
}
_V1_QUOTA: Final = "cpu.cfs_quota_us"
_V1_PERIOD: Final = "cpu.cfs_period_us"
_V2_QUOTA: Final = "cpu.max"


class Cgroupfs:
    """The kernel's cgroups below `root`; nothing is cached between calls."""

    def __init__(self, mounts: Mounts, root: str) -> None:
        self._mounts, self._root = mounts, root
        self._files = (*_ASKED, *_EFFECTIVE[mounts.version])

    def read(self) -> Tree:
        """Every cgroup as it is now; see `CgroupTree`."""
        cgroups = {one.path: one for one in self._walk(self._root)}
        if not cgroups:
            path = str(self._mounts.cpuset / self._root)
            raise CgroupVanishedError(path, None, errno.ENOENT, "there is no such cpuset cgroup")
        return Tree(self._mounts.version, self._root, cgroups)

    def read_one(self, path: str) -> Cgroup:
        """One cgroup as it is now.

        Raises:
            CgroupVanishedError: it is gone.
            CgroupError: a file could not be read.
        """
        folder = self._folder(path)
        cpus, mems, effective_cpus, effective_mems = (
            read_file(f"{folder}/{name}") for name in self._files
        )
        return Cgroup(path, _cpus(cpus), _mems(mems), _cpus(effective_cpus), _mems(effective_mems))

    def write(self, write: Write) -> None:
        """Make one write; see `CgroupTree`."""
        if isinstance(write.value, Quota):
            self._write_quota(write.path, write.value)
            return
        text = str(int(write.value)) if isinstance(write.value, bool) else str(write.value)
        write_file(f"{self._folder(write.path)}/{write.setting}", text)

    def has_tasks(self, path: str) -> bool:
        """Whether a process runs in the cgroup itself (its descendants not counted).

        Raises:
            CgroupVanishedError: it is gone.
            CgroupError: the list could not be read.
        """
        return bool(read_file(f"{self._folder(path)}/cgroup.procs"))

    def read_quota(self, path: str) -> Quota | None:
        """The CFS limit of a cgroup; None if there is no cpu controller.

        Raises:
            CgroupVanishedError: it is gone.
            CgroupError: a file could not be read.
        """
        folder = self._cpu_folder(path)
        if folder is None:
            return None
        if self._mounts.version is Version.V2:
            limit, _, period = read_file(f"{folder}/{_V2_QUOTA}").partition(" ")
            return Quota(None if limit == "max" else int(limit), int(period))
        limit, period = (read_file(f"{folder}/{name}") for name in (_V1_QUOTA, _V1_PERIOD))
        return Quota(None if int(limit) < 0 else int(limit), int(period))

    def _write_quota(self, path: str, quota: Quota) -> None:
        folder = self._cpu_folder(path)
        if folder is None:
            meaning = "there is no cpu controller"
            raise CgroupReadOnlyError(path, str(quota), errno.ENOENT, meaning)
        if self._mounts.version is Version.V2:
            write_file(f"{folder}/{_V2_QUOTA}", str(quota))
            return
        if quota.quota_us is None:
            write_file(f"{folder}/{_V1_QUOTA}", "-1")
            return
        write_file(f"{folder}/{_V1_PERIOD}", str(quota.period_us))
        write_file(f"{folder}/{_V1_QUOTA}", str(quota.quota_us))

    def _walk(self, path: str) -> Iterator[Cgroup]:
        """`path` and its descendants that have a cpuset, parents first.

        On v2 a cgroup has no cpuset files if its parent does not enable the controller. It and its
        descendants then have what the parent has.
        """
        try:
            yield self.read_one(path)
            names = list_folders(self._folder(path))
        except CgroupVanishedError:
            return
        for name in names:
            yield from self._walk(f"{path}/{name}")

    def _folder(self, path: str) -> str:
        self._check(path)
        return f"{self._mounts.cpuset}/{path}"

    def _cpu_folder(self, path: str) -> str | None:
        self._check(path)
        return f"{self._mounts.cpu}/{path}" if self._mounts.cpu else None

    def _check(self, path: str) -> None:
        """Refuse paths outside the tree, which must not be written."""
        if not contains(self._root, path) or ".." in path.split("/"):
            raise ValueError(f"{path!r} is not in the tree {self._root!r}")


@lru_cache(maxsize=4096)
def _cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


@lru_cache(maxsize=4096)
def _mems(text: str) -> MemSet:
    return MemSet.parse(text)
