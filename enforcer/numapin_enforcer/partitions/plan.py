"""The ordered writes that make partitions of containers, and members of all others.

A partition below cgroups that are none takes its CPUs from the whole machine, if all its ancestors
pass them down. Source: Linux, Documentation/admin-guide/cgroup-v2.rst, `cpuset.cpus.exclusive`.
Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import parent

MEMBER: Final = "member"
KINDS: Final[Mapping[str, str]] = {"Partition": "root", "IsolatedPartition": "isolated"}
"""What `cpuset.cpus.partition` must say for each `isolation` of a spec."""


class File(StrEnum):
    """The two files of a cgroup that make it a partition."""

    EXCLUSIVE = "cpuset.cpus.exclusive"
    PARTITION = "cpuset.cpus.partition"


@dataclass(frozen=True, slots=True)
class State:
    """The two files of one cgroup.

    `partition` is `member`, `root` or `isolated`; or what the kernel says of one that is invalid,
    such as `root invalid (Cpu list in cpuset.cpus not exclusive)`.
    """

    exclusive: CpuSet = CpuSet()
    partition: str = MEMBER


UNTOUCHED: Final = State()


@dataclass(frozen=True, slots=True)
class PartitionWrite:
    """One write to one file of one cgroup."""

    path: str
    file: File
    value: str


def ancestors(paths: Iterable[str]) -> frozenset[str]:
    """Every cgroup above `paths` but the root of the hierarchy, which passes all CPUs down."""
    found: set[str] = set()
    for path in paths:
        above = parent(path)
        while above and above not in found:
            found.add(above)
            above = parent(above)
    return frozenset(found)


def plan_partitions(
    states: Mapping[str, State], wanted: Mapping[str, State], found: Mapping[str, State]
) -> list[PartitionWrite]:
    """The writes that are left to do; none once every cgroup is as it must be.

    First partitions end: those that nobody wants, and those that must have other CPUs. Then CPUs
    are given back from below, passed down from above, and at last partitions are made. So no two
    cgroups beside each other have a CPU in `cpuset.cpus.exclusive`, which the kernel refuses. No
    cgroup gains a CPU by that, unless its `cpuset.cpus` says so. A cgroup above others may be a
    partition of somebody else: that is not changed.

    Args:
        states: each cgroup that a partition concerns, or has concerned.
        wanted: the cgroups that must be partitions.
        found: what cgroups had before they were written first; without an entry, `UNTOUCHED`.
    """
    above = ancestors(states)
    meant = {path: _meant(path, wanted, found) for path in states}
    ended = {
        path
        for path, one in states.items()
        if path not in above and one.partition != MEMBER and one != meant[path]
    }
    return [
        *(PartitionWrite(path, File.PARTITION, MEMBER) for path in sorted(ended)),
        *_passed_down(states, meant),
        *(
            PartitionWrite(path, File.PARTITION, meant[path].partition)
            for path, one in sorted(states.items(), key=lambda each: each[0])
            if path not in above
            and (MEMBER if path in ended else one.partition) != meant[path].partition
        ),
    ]


def _passed_down(
    states: Mapping[str, State], meant: Mapping[str, State]
) -> Iterator[PartitionWrite]:
    """CPUs are given back from below, then passed down from above."""
    by_depth = sorted(states, key=lambda path: (path.count("/"), path))
    for path in reversed(by_depth):
        has, kept = states[path].exclusive, states[path].exclusive & meant[path].exclusive
        if has != kept:
            yield PartitionWrite(path, File.EXCLUSIVE, str(kept))
    for path in by_depth:
        if not meant[path].exclusive <= states[path].exclusive:
            yield PartitionWrite(path, File.EXCLUSIVE, str(meant[path].exclusive))


def _meant(path: str, wanted: Mapping[str, State], found: Mapping[str, State]) -> State:
    """What one cgroup must have: its own, or what it passes to those below beside what it had."""
    if path in wanted:
        return wanted[path]
    before = found.get(path, UNTOUCHED)
    below = (one.exclusive for each, one in wanted.items() if each.startswith(f"{path}/"))
    return State(CpuSet.union((before.exclusive, *below)), before.partition)
