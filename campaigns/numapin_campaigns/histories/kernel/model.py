"""A cpuset hierarchy that refuses what Linux refuses, v1 and v2.

Held to the real kernel by the cgroupfs integration tests: the same operations on both give the
same answers. Source: kernel/cgroup/cpuset.c, `update_cpumask`, `validate_change`,
`update_cpumasks_hier`, and cpuset-v1.c.
"""

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupRefusedError, CgroupVanishedError
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, parent
from numapin_enforcer.cgroups.write import Quota, Write

MAX_NODES = 1024
"""Above this a NUMA node is out of range (CONFIG_NODES_SHIFT=10, as Debian's and most kernels)."""


@dataclass
class Group:
    """One cgroup: what was asked, and how many tasks are in it (not below it)."""

    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()
    tasks: int = 0
    migrate: bool = False
    quota: Quota = field(default_factory=lambda: Quota(None))


class KernelModel:
    """A tree below `root`, which has all of the machine as kubepods has.

    `possible` CPUs are those that may ever exist; `online` those that do. `partitions` are the
    cgroups that take CPUs from all others (v2).
    """

    def __init__(
        self, version: Version, possible: CpuSet, mems: MemSet, root: str = "kubepods"
    ) -> None:
        self.version, self.root = version, root
        self.possible, self.online, self.mems = possible, possible, mems
        self.partitions: Mapping[str, CpuSet] = {}
        self.groups = {root: Group()}
        if version is Version.V1:
            self.groups[root] = Group(possible, mems)
        self.before_write: Callable[[Write], None] = lambda _: None
        self.after_write: Callable[[Write], None] = lambda _: None

    def make(self, path: str) -> None:
        """As mkdir, asking for nothing: empty on v1, inherited on v2.

        On v2 the parent gives its controllers to its children, so it may not have tasks.
        """
        if path in self.groups:
            raise self._refused(path, errno.EEXIST)
        if parent(path) not in self.groups:
            raise CgroupVanishedError(path, None, errno.ENOENT, "no parent")
        if self.version is Version.V2 and self.groups[parent(path)].tasks:
            raise self._refused(path, errno.EBUSY)
        self.groups[path] = Group()

    def remove(self, path: str) -> None:
        """As rmdir."""
        if path not in self.groups:
            raise CgroupVanishedError(path, None, errno.ENOENT, "gone")
        if self.groups[path].tasks or self._below(path):
            raise self._refused(path, errno.EBUSY)
        del self.groups[path]

    def vanish(self, path: str) -> None:
        """A container ends: its tasks leave, its cgroups are removed."""
        for one in [one for one in self.groups if f"{one}/".startswith(f"{path}/")]:
            del self.groups[one]

    def enter(self, path: str) -> None:
        """One task comes in, from outside the tree."""
        group = self._group(path)
        if self.version is Version.V1 and not (group.cpus and group.mems):
            raise self._refused(path, errno.ENOSPC)
        if self.version is Version.V2 and self._below(path):
            raise self._refused(path, errno.EBUSY)
        group.tasks += 1

    def leave(self, path: str) -> None:
        """One task goes out of the tree."""
        self._group(path).tasks -= 1

    def set_online(self, online: CpuSet) -> None:
        """CPUs come or go. v1 forgets those that go, and moves tasks up out of emptied cgroups."""
        self.online = online
        if self.version is Version.V2:
            return
        for path in sorted(self.groups, key=lambda path: path.count("/"), reverse=True):
            group = self.groups[path]
            group.cpus &= online
            if not group.cpus and group.tasks and path != self.root:
                self._group(parent(path)).tasks += group.tasks
                group.tasks = 0

    def read(self) -> Tree:
        """Every cgroup as it is now, parents first."""
        cgroups: dict[str, Cgroup] = {}
        for path in sorted(self.groups, key=lambda path: path.split("/")):
            group = self.groups[path]
            cpus, mems = self._effective(group, cgroups.get(parent(path)))
            if path in self.partitions:
                cpus = self.partitions[path] & self.online
            cgroups[path] = Cgroup(path, group.cpus, group.mems, cpus, mems)
        return Tree(self.version, self.root, cgroups)

    def read_effective_cpus(self, path: str) -> CpuSet:
        """The CPUs that one cgroup really has."""
        self._group(path)
        return self.read().cgroups[path].effective_cpus

    def _effective(self, group: Group, above: Cgroup | None) -> tuple[CpuSet, MemSet]:
        if self.version is Version.V1:
            return group.cpus, group.mems
        taken = CpuSet.union(self.partitions.values())
        cpus = above.effective_cpus if above else self.online - taken
        mems = above.effective_mems if above else self.mems
        return group.cpus & cpus or cpus, group.mems & mems or mems

    def write(self, write: Write) -> None:
        """Make one write, or refuse it as the kernel does."""
        self.before_write(write)
        group = self._group(write.path)
        value = write.value
        if isinstance(value, bool):
            group.migrate = value
        elif isinstance(value, CpuSet):
            self._check_cpus(write.path, value)
            self._replace(write.path, replace(group, cpus=value))
        elif isinstance(value, MemSet):
            self._check_mems(write.path, value)
            self._replace(write.path, replace(group, mems=value))
        else:
            group.quota = value
        self.after_write(write)

    def read_quota(self, path: str) -> Quota | None:
        """The CFS limit; every cgroup has the cpu controller here."""
        return self._group(path).quota

    def _check_cpus(self, path: str, cpus: CpuSet) -> None:
        if any(cpu > max(self.possible) for cpu in cpus):
            raise self._refused(path, errno.ERANGE, str(cpus))
        if not cpus <= (self.online if self.version is Version.V1 else self.possible):
            raise self._refused(path, errno.EINVAL, str(cpus))

    def _check_mems(self, path: str, mems: MemSet) -> None:
        if any(node >= MAX_NODES for node in mems):
            raise self._refused(path, errno.ERANGE, str(mems))
        if not mems <= self.mems:
            raise self._refused(path, errno.EINVAL, str(mems))

    def _replace(self, path: str, trial: Group) -> None:
        now = self.groups[path]
        if (now.cpus, now.mems) != (trial.cpus, trial.mems):
            self._validate(path, now, trial)
        self.groups[path] = trial

    def _validate(self, path: str, now: Group, trial: Group) -> None:
        """In the kernel's own order, which decides the errno."""
        if self.version is Version.V1:
            if not all(_inside(self.groups[child], trial) for child in self._below(path)):
                raise self._refused(path, errno.EBUSY)
            if path != self.root and not _inside(trial, self._group(parent(path))):
                raise self._refused(path, errno.EACCES)
        if self._populated(path) and (
            (now.cpus and not trial.cpus) or (now.mems and not trial.mems)
        ):
            raise self._refused(path, errno.ENOSPC)

    def _populated(self, path: str) -> bool:
        return any(
            group.tasks for one, group in self.groups.items() if f"{one}/".startswith(f"{path}/")
        )

    def _below(self, path: str) -> list[str]:
        return [one for one in self.groups if parent(one) == path]

    def _group(self, path: str) -> Group:
        if path not in self.groups:
            raise CgroupVanishedError(path, None, errno.ENOENT, "gone")
        return self.groups[path]

    def _refused(self, path: str, number: int, value: str = "") -> CgroupRefusedError:
        return CgroupRefusedError(path, value, number, errno.errorcode[number])


def _inside(child: Group, above: Group) -> bool:
    return child.cpus <= above.cpus and child.mems <= above.mems
