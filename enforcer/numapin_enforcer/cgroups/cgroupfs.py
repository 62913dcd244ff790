"""The cgroup file system: cpuset.cpus, cpuset.mems and CFS quotas on cgroup v1 and v2."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from numapin_api.conditions import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.files import (
    find_v1_mount,
    is_folder,
    list_folders,
    read_controllers,
    read_file,
    write_file,
)
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Kind
from numapin_enforcer.cgroups.tree import (
    Cgroup,
    CgroupReadOnlyError,
    CgroupVanishedError,
    Quota,
    Tree,
    Version,
    Write,
    contains,
)

_ASKED: Final = ("cpuset.cpus", "cpuset.mems")
_EFFECTIVE: Final = {
    Version.V1: ("cpuset.effective_cpus", "cpuset.effective_mems"),
    Version.V2: ("cpuset.cpus.effective", "cpuset.mems.effective"),
}
_V1_QUOTA: Final = "cpu.cfs_quota_us"
_V1_PERIOD: Final = "cpu.cfs_period_us"
_V2_QUOTA: Final = "cpu.max"


class NoCpusetError(Exception):
    """No cpuset controller is mounted below the folder that was searched."""

    reason = Reason.CPUSET_CONTROLLER_MISSING

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"no cpuset controller below {folder}: neither v2 (cgroup.controllers) nor v1 "
            "(cpuset/cpuset.cpus); name the host's mount with --cgroupfs"
        )
        self.folder = folder


class NoKubepodsError(Exception):
    """The kubelet has not created its cgroup for pods (yet)."""

    reason = Reason.KUBEPODS_NOT_FOUND

    def __init__(self, looked_for: tuple[Path, ...]) -> None:
        paths = " and ".join(str(path) for path in looked_for)
        super().__init__(
            f"found neither of {paths}: start the kubelet, or set --cgroup-root to its cgroupRoot"
        )
        self.looked_for = looked_for


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where the controllers are mounted; on v2 both are the same folder.

    `cpu` is None if there is no cpu controller: then there are no quotas.
    """

    version: Version
    cpuset: Path
    cpu: Path | None


def find_mounts(folder: Path) -> Mounts:
    """The controllers below `folder`, the host's `/sys/fs/cgroup`.

    Raises:
        NoCpusetError: there is no cpuset controller.
    """
    for unified in (folder, folder / "unified"):
        if "cpuset" in read_controllers(unified):
            return Mounts(Version.V2, unified, unified)
    cpuset = find_v1_mount(folder, "cpuset", "cpuset.cpus")
    if cpuset is None:
        raise NoCpusetError(folder)
    return Mounts(Version.V1, cpuset, find_v1_mount(folder, "cpu", "cpu.shares"))


def find_naming(mounts: Mounts, cgroup_root: str = "/") -> CgroupNaming:
    """How the kubelet's cgroups are named on this node: by the driver whose tree exists.

    If both trees exist, because the driver was changed, the one with more pods is chosen.

    Raises:
        NoKubepodsError: neither tree exists.
        InvalidIdError: `cgroup_root` is not a valid cgroup name.
    """
    namings = [CgroupNaming(driver, cgroup_root) for driver in (Driver.SYSTEMD, Driver.CGROUPFS)]
    found = [naming for naming in namings if is_folder(mounts.cpuset / naming.root)]
    if not found:
        raise NoKubepodsError(tuple(mounts.cpuset / naming.root for naming in namings))
    return max(found, key=lambda naming: _pods(mounts, naming))


def _pods(mounts: Mounts, naming: CgroupNaming) -> int:
    paths = Cgroupfs(mounts, naming.root).read().cgroups
    return sum(naming.parse(path).kind is Kind.POD for path in paths)


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
