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
    """The tree as last read; None while the kubelet has no cgroup for pods."""

    def __init__(self, files: CgroupFiles, watch: Watch) -> None:
        self._files, self._watch = files, watch
        self._written: set[str] = set()
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
        tree = self.tree
        if tree is None or self._watch.problem:
            return False
        pending = [tree.root]
        while pending:
            path = pending.pop()
            try:
                found = self._files.read_effective_cpus(path)
            except CgroupError:
                return False
            if found != tree.cgroups[path].effective_cpus:
                return False
            if found.mask & cpus.mask:
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
        if full_resync or changes.overflowed or self.tree is None:
            self._written.clear()  # a full read has no need of events
            self._read_all()
            return
        paths = {*changes.vanished, *changes.appeared, *changes.written, *more}
        if paths:
            self._read_some(self.tree, paths)

    def _read_all(self) -> None:
        try:
            tree = self._files.read()
        except CgroupVanishedError:
            self.tree = None
            return
        self._watch.cover(tree.cgroups)
        if self.tree is None or tree.version != self.tree.version:
            self.tree = tree
        else:
            gone = self.tree.cgroups.keys() - tree.cgroups.keys()
            self.tree = self.tree.with_changes({**tree.cgroups, **dict.fromkeys(gone)}, tree.unread)

    def _read_some(self, tree: Tree, paths: Iterable[str]) -> None:
        found: dict[str, Cgroup | None] = {}
        for path in sorted(_with_descendants(tree, _with_unknown_parents(tree, paths))):
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
            self.tree = tree.with_changes(found, tree.unread)


def _with_unknown_parents(tree: Tree, paths: Iterable[str]) -> set[str]:
    """`paths` and their ancestors that had no cpuset at the last read: no event reports one."""
    found = set(paths)
    for path in tuple(found):
        ancestor = parent(path)
        while ancestor not in tree.cgroups and contains(tree.root, ancestor):
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
