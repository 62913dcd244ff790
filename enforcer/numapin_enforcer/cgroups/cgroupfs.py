"""The cgroup file system: cpuset.cpus, cpuset.mems and CFS quotas on cgroup v1 and v2."""

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import (
    CgroupError,
    CgroupReadOnlyError,
    CgroupRefusedError,
    CgroupVanishedError,
)
from numapin_enforcer.cgroups.file_access import (
    is_folder,
    list_folders,
    parse_cpus,
    parse_mems,
    parse_number,
    raise_if_taken,
    read_bytes,
    read_file,
    read_files,
    write_file,
)
from numapin_enforcer.cgroups.memory.stat_files import read_hugetlb_stat
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.nested.narrow import InsideNarrower
from numapin_enforcer.cgroups.nested.nesting import NestingLimits, ReadOrder
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Unread, Version, contains, parent
from numapin_enforcer.cgroups.write import Quota, Write

_ASKED: Final = ("cpuset.cpus", "cpuset.mems")
HAS_INSIDE: Final = frozenset({Kind.CONTAINER, Kind.NESTED, Kind.OTHER})
"""The cgroups below which all is one container's, or unknown."""

READS_BETWEEN: Final = 32
"""After so many reads there is time for something else: some milliseconds have passed."""

EFFECTIVE_FILES: Final = {
    Version.V1: ("cpuset.effective_cpus", "cpuset.effective_mems"),
    Version.V2: ("cpuset.cpus.effective", "cpuset.mems.effective"),
}
"""The files with the CPUs and the NUMA nodes that a cgroup really has."""

_CONTROLLERS: Final = "cgroup.subtree_control"

_V1_QUOTA: Final = "cpu.cfs_quota_us"
_V1_PERIOD: Final = "cpu.cfs_period_us"
_V2_QUOTA: Final = "cpu.max"


class _Found:
    """The cgroups of one full read, and examples of those that were not read."""

    def __init__(self, limits: NestingLimits) -> None:
        self.cgroups: dict[str, Cgroup] = {}
        self.unread: dict[str, Unread] = {}
        self.limits = limits

    def may_read(self, path: str) -> bool:
        """Whether a cgroup may be read; if so, it is counted from now on."""
        if why := self.limits.refusal(path):
            self._note(path, why)
            return False
        self.limits.add(path)
        return True

    def add_unreadable(self, path: str, error: CgroupError, version: Version) -> None:
        """Count a cgroup as having what its parent has.

        Raises:
            CgroupError: it is the root, or its parent could not be read either.
        """
        above = self.cgroups.get(parent(path))
        if above is None:
            raise error
        asked = (above.cpus, above.mems) if version is Version.V1 else (CpuSet(), MemSet())
        self.cgroups[path] = Cgroup(path, *asked, above.effective_cpus, above.effective_mems)
        self._note(path, str(error))

    def _note(self, path: str, why: str) -> None:
        uid = self.limits.pod_uid(path)
        self.unread.setdefault(uid, Unread(path, uid, why))


def _nothing() -> None:
    """Do nothing."""


class Cgroupfs:
    """The kernel's cgroups below `root`; nothing is cached between calls.

    Attributes:
        between_reads: called after each `READS_BETWEEN` reads, in the thread that reads. It keeps
            new pods off exclusive CPUs while a long pass reads. It must not raise.
    """

    def __init__(self, mounts: Mounts, root: str, naming: CgroupNaming | None = None) -> None:
        """Args: with `naming`, whose root is `root`, the limits of `nesting` hold."""
        self._mounts, self._root, self._naming = mounts, root, naming
        self._inside = InsideNarrower()
        self.between_reads: Callable[[], None] = _nothing
        self._reads = 0
        self._mount = str(mounts.cpuset)
        self._files = (*_ASKED, *EFFECTIVE_FILES[mounts.version])
        self._effective_cpus = EFFECTIVE_FILES[mounts.version][0]

    def read(self) -> Tree:
        """Every cgroup as it is now; see `CgroupTree`."""
        found = _Found(NestingLimits(self._naming))
        self._walk(found)
        if not found.cgroups:
            path = str(self._mounts.cpuset / self._root)
            raise CgroupVanishedError(path, None, errno.ENOENT, "there is no such cpuset cgroup")
        unread = tuple(found.unread.values())
        return Tree(self._mounts.version, self._root, found.cgroups, unread)

    def read_one(self, path: str) -> Cgroup:
        """One cgroup as it is now.

        Raises:
            CgroupVanishedError: it is gone.
            CgroupError: a file could not be read.
        """
        self._check(path)
        return self._read_one(path)[0]

    def read_effective_cpus(self, path: str) -> CpuSet:
        """The CPUs that one cgroup really has; see `CgroupTree`."""
        self._count_read()
        file = f"{self._folder(path)}/{self._effective_cpus}"
        return parse_cpus(file, read_bytes(file))

    def write(self, write: Write) -> None:
        """Make one write; see `CgroupTree`."""
        if isinstance(write.value, Quota):
            self._write_quota(write.path, write.value)
            return
        text = str(int(write.value)) if isinstance(write.value, bool) else str(write.value)
        file = f"{self._folder(write.path)}/{write.setting}"
        try:
            write_file(file, text)
        except CgroupVanishedError:
            if not self._has_lost_cpuset(write.path):
                raise
            write_file(f"{self._folder(parent(write.path))}/{_CONTROLLERS}", "+cpuset")
            write_file(file, text)
        except CgroupRefusedError as error:
            if self._mounts.version is Version.V2 or not isinstance(write.value, CpuSet):
                raise
            self._unblock(write.path, write.value, error)
            write_file(file, text)

    def _unblock(self, path: str, cpus: CpuSet, error: CgroupRefusedError) -> None:
        """Take away what keeps a v1 cgroup from its CPUs, or raise what it is.

        What is inside a container is in no plan; what is above one is set by writes of its own.
        """
        kind = self._naming.parse(path).kind if self._naming is not None else None
        if error.number == errno.EINVAL:
            raise_if_taken(self._mount, path, cpus)
        if error.number != errno.EBUSY or kind not in HAS_INSIDE:
            raise error
        self._inside.narrow(self._folder(path), cpus)

    def _has_lost_cpuset(self, path: str) -> bool:
        """Whether a pod or container exists and its parent gives it no cpuset any more (v2).

        Its processes then have what the parent has. What a container makes may never have one.
        """
        if self._mounts.version is Version.V1 or self._naming is None or path == self._root:
            return False
        kind, folder = self._naming.parse(path).kind, Path(self._folder(path))
        has_folder = kind in {Kind.POD, Kind.CONTAINER} and is_folder(folder)
        return has_folder and not (folder / _ASKED[0]).exists()

    def has_tasks(self, path: str) -> bool:
        """Whether a process runs in the cgroup itself (its descendants not counted).

        Raises:
            CgroupVanishedError: it is gone.
            CgroupError: the list could not be read.
        """
        return bool(read_file(f"{self._folder(path)}/cgroup.procs"))

    def read_numa_stat(self, path: str) -> str:
        """The text of `memory.numa_stat`; empty if there is none."""
        self._check(path)
        if self._mounts.memory is not None:
            with suppress(CgroupError):
                return read_file(f"{self._mounts.memory}/{path}/memory.numa_stat")
        return ""

    def read_hugetlb_stat(self, path: str) -> str:
        """The lines of `hugetlb.*.numa_stat`; see the function."""
        self._check(path)
        return read_hugetlb_stat(self._mounts, path)

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
            text, _, period = read_file(f"{folder}/{_V2_QUOTA}").partition(" ")
            given = None if text == "max" else parse_number(folder, text)
            return Quota(given, parse_number(folder, period))
        texts = (read_file(f"{folder}/{name}") for name in (_V1_QUOTA, _V1_PERIOD))
        limit, every = (parse_number(folder, text) for text in texts)
        return Quota(None if limit < 0 else limit, every)

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

    def _walk(self, found: _Found) -> None:
        """Add every cgroup that has a cpuset, parents first and containers before what they hold.

        On v2 a cgroup has no cpuset files if its parent does not enable the controller. It and its
        descendants then have what the parent has. They are left out, but for pods and containers.
        On v1 nothing runs in a cgroup without CPUs, nor below it: what a container makes inside and
        never uses needs no set.
        """
        order = ReadOrder(found.limits, self._root)
        while (path := order.next()) is not None:
            if not found.may_read(path):
                if found.limits.shortage(path):
                    order.drop(path)
                continue
            try:
                one, has_children = self._read_one(path)
            except CgroupVanishedError:
                if self._has_lost_cpuset(path):
                    why = f"its parent gives it no cpuset: there is no +cpuset in {_CONTROLLERS}"
                    lost = CgroupError(path, None, errno.ENOENT, why)
                    found.add_unreadable(path, lost, self._mounts.version)
                continue
            except CgroupError as error:
                found.add_unreadable(path, error, self._mounts.version)
                continue
            if not one.cpus and self._mounts.version is Version.V1 and found.limits.is_nested(path):
                continue
            found.cgroups[path] = one
            if has_children:
                order.add(path, self._children(path, order.most_children(path)))

    def _read_one(self, path: str) -> tuple[Cgroup, bool]:
        """One cgroup of the tree, and whether it may have children."""
        self._count_read()
        folder = f"{self._mount}/{path}"
        (cpus, mems, *effective), has_children = read_files(folder, self._files)
        asked = (parse_cpus(folder, cpus), parse_mems(folder, mems))
        has = (parse_cpus(folder, effective[0]), parse_mems(folder, effective[1]))
        return Cgroup(path, *asked, *has), has_children

    def _count_read(self) -> None:
        self._reads += 1
        if self._reads % READS_BETWEEN == 0:
            self.between_reads()

    def _children(self, path: str, most: int | None) -> list[str]:
        with suppress(CgroupError):
            return list_folders(self._folder(path), most)
        return []

    def _folder(self, path: str) -> str:
        self._check(path)
        return f"{self._mount}/{path}"

    def _cpu_folder(self, path: str) -> str | None:
        self._check(path)
        return f"{self._mounts.cpu}/{path}" if self._mounts.cpu else None

    def _check(self, path: str) -> None:
        """Refuse paths outside the tree, which must not be written."""
        if not contains(self._root, path) or ".." in path.split("/"):
            raise ValueError(f"{path!r} is not in the tree {self._root!r}")
