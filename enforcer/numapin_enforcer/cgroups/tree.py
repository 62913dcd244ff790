"""Cgroups as values: what the kernel reports of each, and how they lie in a tree.

Does no I/O.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from itertools import compress
from operator import is_not
from typing import Protocol

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.write import Write


class Version(IntEnum):
    """The two cpuset controllers of Linux, whose rules differ."""

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One cgroup as the kernel reported it.

    `path` is relative to the mount of the cpuset controller. `cpus` and `mems` are what was asked
    for: empty means "as the parent" on v2, and "no task can be added yet" on v1.
    """

    path: str
    cpus: CpuSet
    mems: MemSet
    effective_cpus: CpuSet
    effective_mems: MemSet


@dataclass(frozen=True, slots=True)
class OutsideCgroup:
    """The cgroup of a container that is not in the kubelet's tree, and the CPUs it may use."""

    path: str
    cpus: CpuSet


@dataclass(frozen=True, slots=True)
class Unread:
    """A cgroup that was not read, with its descendants, or not completely; `why` says the reason.

    `pod_uid` is the pod it belongs to, or empty. It has at most what its parent has.
    """

    path: str
    pod_uid: str
    why: str


@dataclass(frozen=True, slots=True)
class AllowedSets:
    """The CPUs and NUMA nodes of a node's pods; empty if unknown.

    `cpus_limit` and `mems_limit` name the topmost cgroup that has no more, and how that is set.
    """

    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()
    cpus_limit: str = ""
    mems_limit: str = ""


@dataclass(frozen=True)
class Tree:
    """`root` and all its descendants as read in one pass; parents come before children.

    `unread` has one example for each pod with cgroups that were not read. A cgroup that could not
    be read is in `cgroups` with what its parent has; one beyond the limits is left out.
    """

    version: Version
    root: str
    cgroups: Mapping[str, Cgroup]
    unread: tuple[Unread, ...] = ()

    @cached_property
    def parents(self) -> Mapping[str, str]:
        """The parent of each path but the root."""
        return {path: parent(path) for path in self.cgroups if path != self.root}

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """The children of each path."""
        below: dict[str, list[str]] = {path: [] for path in self.cgroups}
        for path, above in self.parents.items():
            below[above].append(path)
        return {path: tuple(children) for path, children in below.items()}

    def with_changes(
        self, found: Mapping[str, Cgroup | None], unread: tuple[Unread, ...] = ()
    ) -> "Tree":
        """This tree with `found` in it; None stands for a cgroup that is gone, with descendants.

        A cgroup whose parent is not in the tree is left out. What has no difference stays the same
        object: a cgroup, the tree, and `parents` and `children` if no cgroup came or went.
        """
        news = {path: one for path, one in found.items() if self.cgroups.get(path) != one}
        if not news and unread == self.unread:
            return self
        if all(one and path in self.cgroups for path, one in news.items()):
            kept = {path: one for path, one in news.items() if one is not None}
            changed = Tree(self.version, self.root, {**self.cgroups, **kept}, unread)
            changed.__dict__.update(parents=self.parents, children=self.children)
            return changed
        cgroups, parents, children = dict(self.cgroups), dict(self.parents), dict(self.children)
        for path, one in sorted(news.items()):  # parents first
            above = parent(path)
            if one is None:
                for gone in self._subtree(path):
                    cgroups.pop(gone, None)
                    parents.pop(gone, None)
                    children.pop(gone, None)
                if above in children:
                    children[above] = tuple(each for each in children[above] if each != path)
            elif path in cgroups:
                cgroups[path] = one
            elif above in cgroups:
                cgroups[path], parents[path], children[path] = one, above, ()
                children[above] = (*children[above], path)
        changed = Tree(self.version, self.root, cgroups, unread)
        changed.__dict__.update(parents=parents, children=children)
        return changed

    def _subtree(self, path: str) -> Iterator[str]:
        if path in self.cgroups:
            yield path
            for child in self.children[path]:
                yield from self._subtree(child)


def partitions(tree: Tree, paths: Iterable[str]) -> frozenset[str]:
    """Those of `paths` that are cpuset partitions: they have CPUs which their parent lacks.

    The kernel gives no other cgroup CPUs that its parent has not.
    """
    cgroups, parents = tree.cgroups, tree.parents
    return frozenset(
        path
        for path in paths
        if (above := parents.get(path)) is not None
        and cgroups[path].effective_cpus.mask & ~cgroups[above].effective_cpus.mask
    )


def without_partitions(tree: Tree, taken: CpuSet) -> dict[str, Cgroup]:
    """The cgroups that have fewer CPUs because of partitions, with what they get when these end.

    A partition takes its CPUs away from all other cgroups of the machine, whatever these ask for.
    What a cgroup would have without, and not what it has at the moment, says whether it is kept off
    an exclusive CPU.

    Args:
        tree: the cgroups as the kernel has them.
        taken: the CPUs of all partitions.
    """
    found: dict[str, Cgroup] = {}
    masks: dict[str, int] = {}
    for path, one in tree.cgroups.items():
        has, above = one.effective_cpus.mask, taken.mask
        if path != tree.root:
            above &= masks[tree.parents[path]] & (one.cpus.mask or above)
        masks[path] = has | above
        if masks[path] != has:
            found[path] = replace(one, effective_cpus=CpuSet.from_mask(masks[path]))
    return found


def differing(now: Mapping[str, object], before: Mapping[str, object]) -> list[str]:
    """The keys of `now` whose value is another object than in `before`, in the order of `now`.

    Every pass asks this of all cgroups, so no Python code runs for each of them.
    """
    if now is before:
        return []
    return list(compress(now, map(is_not, map(before.get, now), now.values())))


def parent(path: str) -> str:
    """The cgroup that contains `path`."""
    return path.rpartition("/")[0]


def contains(ancestor: str, path: str) -> bool:
    """Whether `path` is `ancestor` or below it."""
    return path == ancestor or path.startswith(f"{ancestor}/")


def related(one: str, other: str) -> bool:
    """Whether one cgroup is the other, or contains it."""
    return contains(one, other) or contains(other, one)


def tree_of(
    version: Version, root: str, cgroups: Iterable[Cgroup], unread: tuple[Unread, ...] = ()
) -> Tree:
    """A tree of `cgroups` in any order; those whose parent has vanished are left out.

    Raises:
        KeyError: `root` is not in `cgroups`.
    """
    given = {one.path: one for one in cgroups}
    kept = {root: given.pop(root)}
    for path in sorted(given, key=lambda path: path.split("/")):
        if parent(path) in kept:
            kept[path] = given[path]
    return Tree(version, root, kept, unread)


class CgroupTree(Protocol):
    """The cgroups below kubepods: the kernel's, or a model of them."""

    def read(self) -> Tree:
        """Every cgroup as it is now; those that vanish during the read are left out.

        Raises:
            CgroupVanishedError: the root itself does not exist.
            CgroupError: a file could not be read.
        """
        ...

    def write(self, write: Write) -> None:
        """Make one write; if it raises, nothing was changed.

        Raises:
            CgroupVanishedError: the cgroup is gone.
            CgroupRefusedError: the kernel refuses the value.
            CgroupReadOnlyError: cgroups may not be written.
        """
        ...

    def read_effective_cpus(self, path: str) -> CpuSet:
        """The CPUs that one cgroup really has now: a fraction of what a read of all of it costs.

        Raises:
            CgroupVanishedError: it is gone.
            CgroupError: the file could not be read.
        """
        ...


def has_processes(tree: Tree, path: str, has_tasks: Callable[[str], bool]) -> bool:
    """Whether a process runs in the cgroup or in one of its descendants in `tree`.

    Args:
        tree: the cgroups as read.
        path: one of them.
        has_tasks: whether a process runs in a cgroup itself. A cgroup for which it raises
            `CgroupError` is gone or cannot be read, and counts as without processes.
    """
    pending = [path]
    while pending:
        one = pending.pop()
        with suppress(CgroupError):
            if has_tasks(one):
                return True
        pending += tree.children.get(one, ())
    return False
