"""Cgroups as values: what the kernel reports of them, and what may be written to them.

Does no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Protocol

from numapin_api.cpuset import CpuSet, MemSet


class Version(IntEnum):
    """The two cpuset controllers of Linux, whose rules differ."""

    V1 = 1
    V2 = 2


@dataclass(frozen=True, slots=True)
class Quota:
    """A CFS limit: `quota_us` of CPU time in each `period_us`; None is no limit."""

    quota_us: int | None
    period_us: int = 100_000

    def __str__(self) -> str:
        """As `cpu.max` says it."""
        return f"{'max' if self.quota_us is None else self.quota_us} {self.period_us}"


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


@dataclass(frozen=True)
class Tree:
    """`root` and all its descendants as read in one pass; parents come before children."""

    version: Version
    root: str
    cgroups: Mapping[str, Cgroup]

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


def parent(path: str) -> str:
    """The cgroup that contains `path`."""
    return path.rpartition("/")[0]


def contains(ancestor: str, path: str) -> bool:
    """Whether `path` is `ancestor` or below it."""
    return path == ancestor or path.startswith(f"{ancestor}/")


def related(one: str, other: str) -> bool:
    """Whether one cgroup is the other, or contains it."""
    return contains(one, other) or contains(other, one)


def tree_of(version: Version, root: str, cgroups: Iterable[Cgroup]) -> Tree:
    """A tree of `cgroups` in any order; those whose parent has vanished are left out.

    Raises:
        KeyError: `root` is not in `cgroups`.
    """
    given = {one.path: one for one in cgroups}
    kept = {root: given.pop(root)}
    for path in sorted(given, key=lambda path: path.split("/")):
        if parent(path) in kept:
            kept[path] = given[path]
    return Tree(version, root, kept)


class Step(StrEnum):
    """Why a write is made; the steps of a plan come in this order."""

    PREPARE = "Prepare"
    NARROW = "Narrow"
    GRANT = "Grant"
    WIDEN = "Widen"
    MOVE_MEMORY = "MoveMemory"


class Setting(StrEnum):
    """What can be written, named as in the files of v1 and v2."""

    CPUS = "cpuset.cpus"
    MEMS = "cpuset.mems"
    MEMORY_MIGRATE = "cpuset.memory_migrate"
    QUOTA = "cpu quota"


Value = CpuSet | MemSet | Quota | bool


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a write to an ancestor changes for a cgroup (v2); `owner` as in `Write`."""

    path: str
    gains: CpuSet
    leaves: CpuSet
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One write to one file of one cgroup.

    `gains` is what the cgroup may use after the write and could not before; `leaves` is what it
    could use before and may not after. `owner` is the container that has the cgroup's CPUs
    exclusively, or empty. `unbound` is what the cgroup asks for and may not use: it gets that as
    soon as its parent does (v2). `inherited` is what the same write changes for descendants. A
    write that `may_block` moves memory pages, and can take seconds.
    """

    path: str
    value: Value
    step: Step
    gains: CpuSet | MemSet = CpuSet()
    leaves: CpuSet | MemSet = CpuSet()
    owner: str = ""
    unbound: CpuSet = CpuSet()
    inherited: tuple[Inherited, ...] = ()
    may_block: bool = False

    @property
    def exclusive_gains(self) -> int:
        """The mask of what exclusive containers may use after the write and could not before."""
        mask = self.gains.mask if self.owner else 0
        for one in self.inherited:
            mask |= one.gains.mask if one.owner else 0
        return mask

    @property
    def exclusive_leaves(self) -> int:
        """The mask of what exclusive containers may use before the write and cannot after it."""
        mask = self.leaves.mask if self.owner else 0
        for one in self.inherited:
            mask |= one.leaves.mask if one.owner else 0
        return mask

    def gains_of(self, path: str) -> int:
        """The mask of what the cgroup itself or a descendant gains by the write."""
        if path == self.path:
            return self.gains.mask
        return next((one.gains.mask for one in self.inherited if one.path == path), 0)

    @property
    def setting(self) -> Setting:
        """The file that `value` goes to."""
        return _SETTINGS[type(self.value)]

    def __str__(self) -> str:
        return f"{self.step}: {self.path} {self.setting} = {self.value}"


_SETTINGS: Mapping[type, Setting] = {
    CpuSet: Setting.CPUS,
    MemSet: Setting.MEMS,
    bool: Setting.MEMORY_MIGRATE,
    Quota: Setting.QUOTA,
}


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
