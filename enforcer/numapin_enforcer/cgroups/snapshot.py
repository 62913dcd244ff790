"""Edge: the cgroup tree as last read; an event has only what it names read again."""

from collections.abc import Iterable
from typing import Protocol

from numapin_enforcer.cgroups.inotify import Changes
from numapin_enforcer.cgroups.tree import (
    Cgroup,
    CgroupTree,
    CgroupVanishedError,
    Tree,
    Version,
    contains,
    parent,
    tree_of,
)


class CgroupFiles(CgroupTree, Protocol):
    """A cgroup tree of which single cgroups can be read."""

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
    """What tells which cgroups changed."""

    def read(self) -> Changes:
        """Everything since the last read; never waits."""
        ...

    def cover(self, paths: Iterable[str]) -> None:
        """Watch also these, which were found by looking."""
        ...


class CgroupView:
    """What is known of the tree; None while the kubelet has no pods' cgroup.

    While nothing changes it stays the same object.
    """

    def __init__(self, files: CgroupFiles, watch: Watch) -> None:
        self._files, self._watch = files, watch
        self.tree: Tree | None = None

    def observe(self, *, everything: bool) -> Tree | None:
        """Bring the view up to date: all of it, or what events named since the last time.

        Raises:
            CgroupError: a file could not be read.
        """
        self._update(self._watch.read(), (), everything=everything)
        return self.tree

    def read_back(self, written: Iterable[str]) -> Tree | None:
        """Read what we wrote, and what others did meanwhile.

        Our own writes are events, too: they are dropped here, before the files are read, so that
        whatever another writes later is an event again.

        Raises:
            CgroupError: a file could not be read.
        """
        self._update(self._watch.read(), written, everything=False)
        return self.tree

    def _update(self, changes: Changes, more: Iterable[str], *, everything: bool) -> None:
        if everything or changes.overflowed or self.tree is None:
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
        if self.tree is None or tree.cgroups != self.tree.cgroups:
            self.tree = tree

    def _read_some(self, tree: Tree, paths: Iterable[str]) -> None:
        known = dict(tree.cgroups)
        for path in sorted(_with_heirs(tree, _with_unknown_parents(tree, paths))):
            try:
                known[path] = self._files.read_one(path)
            except CgroupVanishedError:
                known.pop(path, None)
        if tree.root not in known:
            self._read_all()
        elif known != tree.cgroups:
            self.tree = tree_of(tree.version, tree.root, known.values())


def _with_unknown_parents(tree: Tree, paths: Iterable[str]) -> set[str]:
    """`paths`, and around them what had no cpuset when last looked at: no event tells it has."""
    found = set(paths)
    for path in tuple(found):
        above = parent(path)
        while above not in tree.cgroups and contains(tree.root, above):
            found.add(above)
            above = parent(above)
    return found


def _with_heirs(tree: Tree, paths: Iterable[str]) -> set[str]:
    """`paths`, and on v2 everything inside, which inherits."""
    if tree.version is Version.V1:
        return set(paths)
    found: set[str] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += tree.children.get(path, ())
    return found
