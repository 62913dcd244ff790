"""The kernel model below a parent that may have fewer CPUs; it remembers what was read of it."""

import errno
from dataclasses import replace

from numapin_api.cpuset import CpuSet, MemSet
from numapin_campaigns.histories.kernel.model import Group
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_enforcer.cgroups.errors import CgroupError, CgroupVanishedError
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, parent


class Kernel(WatchedModel):
    """Every write is judged by the whole tree, so reading it again must cost nothing."""

    _outer: CpuSet | None = None
    _tree: Tree | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether what is written may silently have another effect."""
        return self._outer is not None

    def restrict(self, outer: CpuSet) -> None:
        """A parent of kubepods has only these CPUs on v2; an empty set lifts that."""
        self._outer, self._tree = outer or None, None

    def make(self, path: str, *, bare: bool = False) -> None:
        """As runc and the kubelet do: on v1 with the sets of the parent, unless it is `bare`."""
        super().make(path)
        self._tree = None
        if self.version is Version.V1 and not bare:
            above = self.groups[parent(path)]
            self.groups[path] = Group(above.cpus, above.mems)

    def takes(self, path: str, cpus: CpuSet) -> bool:
        """Whether it would make a write of these CPUs to a cgroup."""
        try:
            group = self._group(path)
            self._check_cpus(path, cpus)
            self._validate(path, group, replace(group, cpus=cpus))
        except CgroupError:
            return False
        return True

    def vanish(self, path: str) -> None:
        """A container ends."""
        super().vanish(path)
        self._tree = None

    def read(self) -> Tree:
        """Every cgroup as it is now; the same object until something changes."""
        if self._tree is None:
            self._tree = super().read()
        return self._tree

    def read_one(self, path: str) -> Cgroup:
        """One cgroup of `read`."""
        found = self.read().cgroups
        if path not in found:
            raise CgroupVanishedError(path, None, errno.ENOENT, "gone")
        return found[path]

    def _replace(self, path: str, trial: Group) -> None:
        super()._replace(path, trial)
        self._tree = None

    def _effective(self, group: Group, above: Cgroup | None) -> tuple[CpuSet, MemSet]:
        if above is not None or self._outer is None or self.version is Version.V1:
            return super()._effective(group, above)
        outer = self._outer & self.online or self.online
        return group.cpus & outer or outer, group.mems & self.mems or self.mems
