"""Finds the kubelet's cgroups: the mounts, the kubepods tree in them, its watch."""

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from numapin_api.conditions.reasons import Reason
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import is_folder
from numapin_enforcer.cgroups.kubepods.allowed import read_allowed
from numapin_enforcer.cgroups.kubepods.outside import find_outside
from numapin_enforcer.cgroups.memory.binding import MemoryFiles
from numapin_enforcer.cgroups.mounts import Mounts, find_mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Kind
from numapin_enforcer.cgroups.tree import AllowedSets, OutsideCgroup, Version
from numapin_enforcer.cgroups.tree_cache import TreeCache, Watch
from numapin_enforcer.cgroups.watch.event_reader import EventSource
from numapin_enforcer.cgroups.watch.inotify import CgroupWatch, Changes
from numapin_enforcer.cgroups.watch.new_pods import NewPodWatch
from numapin_enforcer.cgroups.write import Quota

REFUSED_V1: Final = "on cgroup v1 a kubelet of 1.35 or newer starts only with failCgroupV1: false"
"""Source: KEP-5573, "Enable FailCgroupV1 by default"."""


class NoKubepodsError(Exception):
    """The kubelet has not created its cgroup for pods (yet)."""

    reason = Reason.KUBEPODS_NOT_FOUND

    def __init__(self, looked_for: tuple[Path, ...], version: Version) -> None:
        paths = " and ".join(str(path) for path in looked_for)
        refusal = f"; {REFUSED_V1}" if version is Version.V1 else ""
        super().__init__(
            f"found neither of {paths}: start the kubelet, or set --cgroup-root to its cgroupRoot"
            f"{refusal}"
        )
        self.looked_for = looked_for


class PodFiles(MemoryFiles, Protocol):
    """The files of the kubelet's cgroups; see `Cgroupfs`."""

    between_reads: Callable[[], None]

    def read_quota(self, path: str) -> Quota | None:
        """The CFS limit of a cgroup; None if it has no cpu controller."""
        ...


class PodWatch(EventSource, Watch, Protocol):
    """The events of the kubelet's cgroups; see `CgroupWatch`."""

    @property
    def collected(self) -> Changes:
        """What happened since the last `read`, as far as collected."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class NewPods(Protocol):
    """The watch on new pods alone; see `NewPodWatch`."""

    problem: str

    def fileno(self) -> int:
        """The descriptor that is readable while there are new pods."""
        ...

    def take(self) -> tuple[str, ...]:
        """The pods that were made since the last call."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


@dataclass(frozen=True)
class PodTree:
    """The kubelet's cgroups on this node."""

    naming: CgroupNaming
    files: PodFiles
    watch: PodWatch
    new_pods: NewPods
    snapshot: TreeCache
    mounts: Mounts

    def outside(self, ids: Collection[str]) -> dict[str, OutsideCgroup]:
        """The cgroups that these containers have elsewhere, by container id."""
        return find_outside(self.mounts, self.naming.root, ids)


class KubepodsFinder:
    """Finds the kubelet's cgroups, which may be created after the enforcer starts, and deleted.

    Raises:
        NoCpusetError: no cpuset controller is mounted below `cgroupfs`.
        InvalidIdError: `cgroup_root` is not a valid cgroup name.
    """

    def __init__(self, cgroupfs: Path, cgroup_root: str) -> None:
        self.mounts = find_mounts(cgroupfs)
        self._cgroup_root = CgroupNaming(Driver.CGROUPFS, cgroup_root).cgroup_root
        self.tree: PodTree | None = None
        self.problem = ""
        """Why there is no tree; empty if there is one."""

    def open(self) -> PodTree | None:
        """The tree, searched for if it was not found before; None if it does not exist.

        Raises:
            CgroupError: a cgroup could not be read.
            OSError: this process cannot open more files.
        """
        if self.tree is None:
            try:
                naming = find_naming(self.mounts, self._cgroup_root)
            except NoKubepodsError as error:
                self.problem = str(error)
                return None
            self.tree, self.problem = self._build(naming), ""
        return self.tree

    def moved(self) -> bool:
        """Whether the kubelet uses its other tree by now, because its driver was changed."""
        if self.tree is None:
            return False
        try:
            found = find_naming(self.mounts, self._cgroup_root)
        except NoKubepodsError:
            return False
        return found.driver is not self.tree.naming.driver

    def allowed(self) -> AllowedSets:
        """What the kernel lets pods use; what their parent may use, until their tree exists."""
        if self.tree is not None:
            below = self.tree.snapshot.tree
            cgroups = below.cgroups.values() if below is not None else ()
            return read_allowed(self.mounts, self.tree.naming.root, cgroups)
        try:
            naming = find_naming(self.mounts, self._cgroup_root)
        except NoKubepodsError:
            naming = CgroupNaming(Driver.SYSTEMD, self._cgroup_root)
        return read_allowed(self.mounts, naming.root)

    def close(self) -> None:
        """Stop watching; the next `open` searches again."""
        if self.tree is not None:
            self.tree.watch.close()
            self.tree.new_pods.close()
            self.tree = None

    @property
    def watch_problem(self) -> str:
        """Why events may be missed; empty if none is missed."""
        if self.tree is None:
            return ""
        return self.tree.watch.problem or self.tree.new_pods.problem

    @property
    def version(self) -> Version:
        """The cgroup version of this node."""
        return self.mounts.version

    def _build(self, naming: CgroupNaming) -> PodTree:
        files = Cgroupfs(self.mounts, naming.root, naming)
        with ExitStack() as on_failure:  # the next pass tries again: root has few instances
            new_pods = NewPodWatch(self.mounts.cpuset, naming)
            on_failure.callback(new_pods.close)
            watch = CgroupWatch(self.mounts.cpuset, naming.root, naming)
            on_failure.pop_all()
        return PodTree(naming, files, watch, new_pods, TreeCache(files, watch), self.mounts)


def find_naming(mounts: Mounts, cgroup_root: str = "/") -> CgroupNaming:
    """How the kubelet's cgroups are named on this node: by the driver whose tree exists.

    If both trees exist, because the driver was changed, the one with more containers is chosen, or
    else the one with more pods.

    Raises:
        NoKubepodsError: neither tree exists.
        InvalidIdError: `cgroup_root` is not a valid cgroup name.
    """
    namings = [CgroupNaming(driver, cgroup_root) for driver in (Driver.SYSTEMD, Driver.CGROUPFS)]
    found = [naming for naming in namings if is_folder(mounts.cpuset / naming.root)]
    if not found:
        paths = tuple(mounts.cpuset / naming.root for naming in namings)
        raise NoKubepodsError(paths, mounts.version)
    return found[0] if len(found) == 1 else max(found, key=lambda naming: _use(mounts, naming))


def _use(mounts: Mounts, naming: CgroupNaming) -> tuple[int, int]:
    """How many containers and pods a tree has; none if it cannot be read."""
    try:
        paths = Cgroupfs(mounts, naming.root, naming).read().cgroups
    except CgroupError:
        return (0, 0)
    kinds = Counter(naming.parse(path).kind for path in paths)
    return kinds[Kind.CONTAINER], kinds[Kind.POD]
