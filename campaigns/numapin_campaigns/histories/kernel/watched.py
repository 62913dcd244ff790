"""The kernel model with what an enforcer's view needs besides: single reads, tasks, events."""

import errno
from collections.abc import Callable, Iterable

from numapin_api.cpuset import CpuSet
from numapin_campaigns.histories.kernel.model import KernelModel
from numapin_enforcer.cgroups.errors import CgroupVanishedError
from numapin_enforcer.cgroups.tree import Cgroup, Tree
from numapin_enforcer.cgroups.watch.inotify import Changes
from numapin_enforcer.cgroups.write import Write


def _nothing() -> None:
    """Do nothing."""


class WatchedModel(KernelModel):
    """Reports changes as inotify does: where, but not what."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.appeared: list[str] = []
        self.vanished: list[str] = []
        self.written: list[str] = []
        self.reads = self.full_reads = 0
        self.covered: set[str] = set()
        self.overflowed = False
        self.between_reads: Callable[[], None] = _nothing

    def make(self, path: str) -> None:
        """As mkdir, with an event."""
        super().make(path)
        self.appeared.append(path)

    def vanish(self, path: str) -> None:
        """A container ends, with an event."""
        super().vanish(path)
        self.vanished.append(path)

    def write(self, write: Write) -> None:
        """One write, with an event if the kernel takes it."""
        super().write(write)
        self.written.append(write.path)

    def read(self) -> Tree:
        """Every cgroup as it is now; counted."""
        if self.root not in self.groups:
            raise CgroupVanishedError(self.root, None, errno.ENOENT, "gone")
        self.full_reads += 1
        self.between_reads()
        return super().read()

    def read_one(self, path: str) -> Cgroup:
        """One cgroup as it is now; counted."""
        self.reads += 1
        self.between_reads()
        found = super().read().cgroups
        if path not in found:
            raise CgroupVanishedError(path, None, errno.ENOENT, "gone")
        return found[path]

    def read_effective_cpus(self, path: str) -> CpuSet:
        """The CPUs that one cgroup really has; counted."""
        return self.read_one(path).effective_cpus

    def read_numa_stat(self, path: str) -> str:
        """There is no memory controller here."""
        self._group(path)
        return ""

    def read_hugetlb_stat(self, path: str) -> str:
        """There is no hugetlb controller here."""
        self._group(path)
        return ""

    def has_tasks(self, path: str) -> bool:
        """Whether a task is in the cgroup itself."""
        return self._group(path).tasks > 0


class ModelWatch:
    """The watch on a model; reading it forgets, as inotify does."""

    def __init__(self, model: WatchedModel) -> None:
        self._model, self.problem = model, ""

    def cover(self, paths: Iterable[str]) -> None:
        """Watch these cgroups and no others."""
        self._model.covered = set(paths)

    def read(self) -> Changes:
        """What changed since the last call."""
        model = self._model
        lists = (model.appeared, model.vanished, model.written)
        appeared, vanished, written = map(tuple, lists)
        changes = Changes(appeared, vanished, written, model.overflowed)
        for one in lists:
            one.clear()
        model.overflowed = False
        return changes
