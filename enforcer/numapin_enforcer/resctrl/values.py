"""Groups of resctrl, what a spec asks for, and what is saved, as values.

Does no I/O. Source of the kernel's rules: Documentation/filesystems/resctrl.rst, and
fs/resctrl/ctrlmondata.c (`cbm_validate`, `bw_validate`), of the Linux source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.cpuset import CpuSet

GROUP: Final = "numapin"
"""The resctrl group of exclusive CPUs."""

BANDWIDTH: Final = "MB"
CACHES: Final = ("L3", "L3CODE", "L3DATA")
"""The lines of a cache: the first alone, or the others if resctrl is mounted with `cdp`."""

Key = tuple[str, int]
"""A line of `schemata`, and the id of a cache."""

Values = Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Ways:
    """Which masks of ways the kernel takes.

    Attributes:
        whole: the mask of all ways.
        least: the fewest ways of a mask.
        hardware: ways that devices fill as well.
        sparse: whether a mask may have gaps.
    """

    whole: int
    least: int = 1
    hardware: int = 0
    sparse: bool = False

    def takes(self, mask: int) -> bool:
        """Whether the kernel takes a mask."""
        above = mask + (mask & -mask)
        is_whole = self.sparse or not mask & above
        return bool(mask) and is_whole and (mask & ~above).bit_count() >= self.least

    def count(self, percent: int) -> int:
        """So many ways are at least this share."""
        return max(-(-self.whole.bit_count() * percent // 100), self.least)


@dataclass(frozen=True, slots=True)
class Steps:
    """Which percentages of bandwidth the hardware can set."""

    least: int
    step: int

    def at_least(self, percent: int) -> int:
        """What the kernel makes of a percentage."""
        return min(-(-max(percent, self.least) // self.step) * self.step, 100)


@dataclass(frozen=True, slots=True)
class Group:
    """A resctrl group.

    Attributes:
        name: of its folder.
        cpus: the CPUs whose tasks it serves, unless these are in another group themselves.
        values: of `schemata`: masks of ways and percentages of bandwidth.
    """

    name: str
    cpus: CpuSet = CpuSet()
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What resctrl says.

    Attributes:
        default: the values of the default group, which all CPUs of no other group are in.
        groups: all others.
        ways: None if the L3 cannot be divided.
        steps: None if bandwidth cannot be limited in percent.
    """

    default: Values
    groups: tuple[Group, ...] = ()
    ways: Ways | None = None
    steps: Steps | None = None

    @property
    def ours(self) -> Group | None:
        """The group of exclusive CPUs; None if it does not exist."""
        return next((one for one in self.groups if one.name == GROUP), None)

    @property
    def others(self) -> list[Group]:
        """The groups of other programs."""
        return [one for one in self.groups if one.name != GROUP]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a spec asks for.

    Attributes:
        cpus: the exclusive ones that are online; without any, everything is restored.
        caches: the ids of the L3 caches that they use.
        l3_percent: 0 leaves ways alone.
        bandwidth: of each of them, in percent.
        others_bandwidth: of each other CPU beside them.
    """

    cpus: CpuSet = CpuSet()
    caches: frozenset[int] = frozenset()
    l3_percent: int = 0
    bandwidth: int = 100
    others_bandwidth: int = 100


NOTHING: Final = Wanted()


@dataclass(frozen=True, slots=True)
class Saved:
    """A value of the default group.

    Attributes:
        found: what others have set; restored in the end.
        written: what this program may have written in its place.
    """

    found: int
    written: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Record:
    """What is on disk.

    Attributes:
        values: of the default group, those that may have been written.
        ways: of exclusive CPUs, by cache.
    """

    values: Mapping[Key, Saved] = field(default_factory=dict)
    ways: Mapping[int, int] = field(default_factory=dict)
