"""The cgroup tree as last read; an event leads to a new read of the cgroups that it names."""

from collections.abc import Iterable
from typing import Protocol

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError, CgroupVanishedError
from numapin_enforcer.cgroups.tree import (
    Cgroup,
    CgroupTree,
    Tree,
    Version,
    contains,
    parent,
    partitions,
    without_partitions,
)
from numapin_enforcer.cgroups.watch.inotify import Changes


class CgroupFiles(CgroupTree, Protocol):
    """A cgroup tree whose cgroups can also be read one by one."""

    def read_one(self, path: str) -> Cgroup:
        """One cgroup as it is now.

        Raises:
            CgroupVanishedError: it is gone.
        """
        ...

    def has_tasks(self, path: str) -> bool:
        """Whether a process runs in the cgroup itself.

        Raises:
            CgroupVanishedError: it is gone.
        """
        ...


class Watch(Protocol):
    """The source of events: which cgroups changed."""

    @property
    def problem(self) -> str:
        """Why events may be missed; empty if none is missed."""
        ...

    def read(self) -> Changes:
        """Everything since the last read; never waits."""
        ...

    def cover(self, paths: Iterable[str]) -> None:
        """Watch these as well, which a rescan found."""
        ...


class TreeCache:
    """The tree as last read; None while the kubelet has no cgroup for pods.

    Attributes:
        tree: the cgroups with the CPUs that they would have without cpuset partitions.
    """

    def __init__(self, files: CgroupFiles, watch: Watch) -> None:
        self._files, self._watch = files, watch
        self._written: set[str] = set()
        self._read: Tree | None = None
        """As the kernel has it."""
        self._partitions: frozenset[str] = frozenset()
        self.tree: Tree | None = None

    def observe(self, *, full_resync: bool) -> Tree | None:
        """Read the whole tree again, or the cgroups that events have named since the last call.

        Raises:
            CgroupError: a file could not be read.
        """
        self._update(self._watch.read(), (), full_resync=full_resync)
        return self.tree

    def is_current(self, cpus: CpuSet) -> bool:
        """Whether each cgroup that may use any of `cpus` still has the CPUs that were read last.

        The kernel gives a cgroup no CPU that its parent has not: where a cgroup has none of `cpus`,
        nothing below it is read. Changes of other cgroups are found by events and by full reads.
        """
        tree, read = self.tree, self._read
        if tree is None or read is None or self._watch.problem:
            return False
        pending = [tree.root]
        while pending:
            path = pending.pop()
            try:
                found = self._files.read_effective_cpus(path)
            except CgroupError:
                return False
            if found != read.cgroups[path].effective_cpus:
                return False
            if tree.cgroups[path].effective_cpus.mask & cpus.mask:
                pending += tree.children[path]
        return True

    def read_back(self, written: Iterable[str]) -> Tree | None:
        """Read the cgroups that we wrote, and those that others changed meanwhile.

        Our own writes are events as well. They are dropped here, before the files are read, so that
        a later write by others is a new event.

        Raises:
            CgroupError: a file could not be read.
        """
        self._update(self._watch.read(), written, full_resync=False)
        return self.tree

    def pop_written(self) -> frozenset[str]:
        """The cgroups that events reported as written since the last call, by whomever."""
        written, self._written = self._written, set()
        return frozenset(written)

    def _update(self, changes: Changes, more: Iterable[str], *, full_resync: bool) -> None:
        self._written.update(changes.written)
        if full_resync or changes.overflowed or self._read is None:
            self._written.clear()  # a full read has no need of events
            self._read_all()
            return
        paths = {*changes.vanished, *changes.appeared, *changes.written, *more}
        if paths:
            self._read_some(self._read, paths)

    def _read_all(self) -> None:
        try:
            tree = self._files.read()
        except CgroupVanishedError:
            self._read = self.tree = None
            return
        self._watch.cover(tree.cgroups)
        if self._read is None or tree.version != self._read.version:
            self._read = tree
        else:
            gone = self._read.cgroups.keys() - tree.cgroups.keys()
            found = {**tree.cgroups, **dict.fromkeys(gone)}
            self._read = self._read.with_changes(found, tree.unread)
        self._leave_out_partitions(self._read, self._read.cgroups)

    def _read_some(self, tree: Tree, paths: Iterable[str]) -> None:
        found: dict[str, Cgroup | None] = {}
        wanted = _with_descendants(tree, _with_unknown_parents(tree, paths))
        if self._partitions:  # no event says what a partition has left to those above it
            wanted |= _ancestors(tree, wanted)
        for path in sorted(wanted):
            try:
                found[path] = self._files.read_one(path)
            except CgroupVanishedError:
                found[path] = None
            except CgroupError:  # only a full read says what stands for it
                self._read_all()
                return
        if tree.root in found and found[tree.root] is None:
            self._read_all()
        else:
            self._read = tree.with_changes(found, tree.unread)
            self._leave_out_partitions(self._read, found)

    def _leave_out_partitions(self, read: Tree, paths: Iterable[str]) -> None:
        """Make `tree` of what was read; `paths` are those that may be partitions since."""
        self._partitions = partitions(read, {*paths, *self._partitions})
        if not self._partitions:
            self.tree = read
            return
        taken = CpuSet.union(read.cgroups[path].effective_cpus for path in self._partitions)
        found: dict[str, Cgroup | None] = {**read.cgroups, **without_partitions(read, taken)}
        base = self.tree or read
        gone = base.cgroups.keys() - found.keys()
        self.tree = base.with_changes({**found, **dict.fromkeys(gone)}, read.unread)


def _with_unknown_parents(tree: Tree, paths: Iterable[str]) -> set[str]:
    """`paths` and their ancestors that had no cpuset at the last read: no event reports one."""
    found = set(paths)
    for path in tuple(found):
        ancestor = parent(path)
        while ancestor not in tree.cgroups and contains(tree.root, ancestor):
            found.add(ancestor)
            ancestor = parent(ancestor)
    return found


def _ancestors(tree: Tree, paths: Iterable[str]) -> set[str]:
    """All ancestors of `paths` in the tree."""
    found: set[str] = set()
    for path in paths:
        ancestor = parent(path)
        while contains(tree.root, ancestor) and ancestor not in found:
            found.add(ancestor)
            ancestor = parent(ancestor)
    return found


def _with_descendants(tree: Tree, paths: Iterable[str]) -> set[str]:
    """`paths`, and on v2 all their descendants, which inherit."""
    if tree.version is Version.V1:
        return set(paths)
    found: set[str] = set()
    pending = list(paths)
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += tree.children.get(path, ())
    return found
