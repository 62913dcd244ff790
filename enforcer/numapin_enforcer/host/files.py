"""The files of cgroups beside the kubelet's."""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.cgroupfs import EFFECTIVE_FILES
from numapin_enforcer.cgroups.errors import CgroupError, CgroupVanishedError, error_of
from numapin_enforcer.cgroups.file_access import (
    is_folder,
    list_folders,
    read_file,
    read_files,
    write_file,
)
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import is_literal
from numapin_enforcer.cgroups.tree import Version, contains
from numapin_enforcer.host.cgroup_sets import HostCgroup

ASKED: Final = "cpuset.cpus"

MOST_CGROUPS: Final = 4096
"""How many are read: a node has ten on v2, and on v1 those that others have made."""

_UNIT: Final = re.compile(r"[A-Za-z0-9:_.\\@-]+\.(slice|scope|service|socket|mount|swap)", re.ASCII)
_FILLED: Final = ("slice", "scope")
"""Units that have processes, but for moments. Others may have none for ever, such as mounts."""


class HostFiles:
    """The cgroups of a node that hold no pods; nothing is cached between calls."""

    def __init__(self, mounts: Mounts, sysfs: Path) -> None:
        self.version = mounts.version
        self._mount, self._sysfs = str(mounts.cpuset), sysfs
        self._init = mounts.cpuset / "init.scope"

    @property
    def is_systemd(self) -> bool:
        """Whether systemd makes the cgroups, and writes their cpusets. On v1 it writes none."""
        return self.version is Version.V2 and is_folder(self._init)

    def is_unit(self, path: str) -> bool:
        """Whether the cgroup has the name of a unit."""
        return _UNIT.fullmatch(path.rpartition("/")[2]) is not None

    def every_cpu(self) -> CpuSet:
        """The CPUs that a cgroup may ask for: on v2 all that this machine may ever have.

        Raises:
            CgroupError: the file could not be read.
        """
        if self.version is Version.V1:
            return self._effective("")
        return CpuSet.parse(read_file(f"{self._sysfs}/devices/system/cpu/possible"))

    def read(self, pod_trees: Sequence[str]) -> dict[str, HostCgroup]:
        """The cgroups beside those of pods and their ancestors; on v1 all that are below, too.

        One that ends meanwhile is left out. Containers of pods whose runtime has made them at the
        top are no processes of the host.

        Raises:
            CgroupError: a file could not be read, or there are more than `MOST_CGROUPS`.
        """
        found: dict[str, HostCgroup] = {}
        for count, path in enumerate(self._beside(pod_trees)):
            if count == MOST_CGROUPS:
                why = f"more than {MOST_CGROUPS} cgroups are beside the kubelet's"
                raise CgroupError(self._mount, None, errno.E2BIG, why)
            with suppress(CgroupVanishedError):
                if (one := self._read_one(path)) is not None:
                    found[path] = one
        return found

    def write(self, path: str, cpus: CpuSet) -> None:
        """Write a set, as `write_file` does."""
        write_file(f"{self._mount}/{path}/{ASKED}", str(cpus))

    def _beside(self, pod_trees: Sequence[str]) -> Iterator[str]:
        pending = [""]
        while pending:
            above = pending.pop()
            for name in self._children(above):
                path = f"{above}/{name}" if above else name
                if path in pod_trees or is_literal(path):
                    continue
                holds_pods = any(contains(path, one) for one in pod_trees)
                if not holds_pods:
                    yield path
                if holds_pods or self.version is Version.V1:
                    pending.append(path)

    def _children(self, path: str) -> list[str]:
        with suppress(CgroupVanishedError):
            return list_folders(f"{self._mount}/{path}" if path else self._mount)
        return []

    def _read_one(self, path: str) -> HostCgroup | None:
        """One cgroup; None if it needs no set: no process is in it, nor is likely to be."""
        folder = f"{self._mount}/{path}"
        try:
            number = os.lstat(folder).st_ino
        except OSError as error:
            raise error_of(folder, None, error) from error
        try:
            texts, _ = read_files(folder, (ASKED, EFFECTIVE_FILES[self.version][0]))
        except CgroupVanishedError:  # the files, or everything
            above = path.rpartition("/")[0]
            return HostCgroup(path, number, CpuSet(), self._effective(above), has_cpuset=False)
        cpus, effective = (CpuSet.parse(text.decode("ascii").strip()) for text in texts)
        if self.version is Version.V1:
            return HostCgroup(path, number, cpus, effective) if cpus else None
        if not self._may_have_processes(path):
            return None
        return HostCgroup(path, number, cpus, effective)

    def _may_have_processes(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if not self.is_unit(path) or name.rpartition(".")[2] in _FILLED:
            return True
        return "populated 1" in read_file(f"{self._mount}/{path}/cgroup.events").splitlines()

    def _effective(self, path: str) -> CpuSet:
        folder = f"{self._mount}/{path}" if path else self._mount
        return CpuSet.parse(read_file(f"{folder}/{EFFECTIVE_FILES[self.version][0]}"))
