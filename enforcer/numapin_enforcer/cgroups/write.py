"""A write to a cgroup's file as a value: what it sets, and what the cgroup gains and loses by it.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from numapin_api.cpuset import CpuSet, MemSet


@dataclass(frozen=True, slots=True)
class Quota:
    """A CFS limit: `quota_us` of CPU time in each `period_us`; None is no limit."""

    quota_us: int | None
    period_us: int = 100_000

    def __str__(self) -> str:
        """As `cpu.max` says it."""
        return f"{'max' if self.quota_us is None else self.quota_us} {self.period_us}"


class Step(StrEnum):
    """Why a write is made; the steps of a plan come in this order."""

    PREPARE = "Prepare"
    NARROW = "Narrow"
    GRANT = "Grant"
    WIDEN = "Widen"
    MOVE_MEMORY = "MoveMemory"
    SET_AGAIN = "SetAgain"
    """Not a step of a plan: a set goes to another one and back, so that threads follow it."""


class Setting(StrEnum):
    """What can be written, named as in the files of v1 and v2."""

    CPUS = "cpuset.cpus"
    MEMS = "cpuset.mems"
    MEMORY_MIGRATE = "cpuset.memory_migrate"
    QUOTA = "cpu quota"


Value = CpuSet | MemSet | Quota | bool


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a write to an ancestor changes for a cgroup (v2); fields as in `Write`."""

    path: str
    gains: CpuSet
    leaves: CpuSet
    exclusive_container: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One write to one file of one cgroup.

    `gains` is what the cgroup may use after the write and could not before; `leaves` is what it
    could use before and may not after. `exclusive_container` is the container that has the
    cgroup's CPUs exclusively, or empty. `unbound` is what the cgroup asks for and may not use: it
    gets that as soon as its parent does (v2). `inherited` is what the same write changes for
    descendants that gain by it, or are exclusive. A write that `may_block` moves memory pages, and
    can take seconds.
    """

    path: str
    value: Value
    step: Step
    gains: CpuSet | MemSet = CpuSet()
    leaves: CpuSet | MemSet = CpuSet()
    exclusive_container: str = ""
    unbound: CpuSet = CpuSet()
    inherited: tuple[Inherited, ...] = ()
    may_block: bool = False

    @property
    def exclusive_gains(self) -> int:
        """The mask of what exclusive containers may use after the write and could not before."""
        mask = self.gains.mask if self.exclusive_container else 0
        for one in self.inherited:
            mask |= one.gains.mask if one.exclusive_container else 0
        return mask

    @property
    def exclusive_leaves(self) -> int:
        """The mask of what exclusive containers may use before the write and cannot after it."""
        mask = self.leaves.mask if self.exclusive_container else 0
        for one in self.inherited:
            mask |= one.leaves.mask if one.exclusive_container else 0
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
