"""No exclusive CPU is shared: the cgroups of one node at one time. Does no I/O."""

from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import related

Cpus = TypeVar("Cpus", CpuSet, int)
"""CPUs; as bit masks where a thousand trees a second are judged."""


class Shared(NamedTuple, Generic[Cpus]):
    """CPUs that `owner` must have alone, and that the cgroup `other` has, too."""

    owner: str
    other: str
    cpus: Cpus


def shared(owners: Mapping[str, Cpus], has: Mapping[str, Cpus]) -> Iterator[Shared[Cpus]]:
    """Every exclusive CPU that a cgroup has which is neither the owner nor above or below it.

    Args:
        owners: the exclusive CPUs of each owner, by its path.
        has: the effective CPUs of each cgroup, by its path. A process counts as a cgroup of its
            own below that of its container.
    """
    for owner, cpus in owners.items():
        for other, theirs in has.items():
            if (both := cpus & theirs) and not related(owner, other):
                yield Shared(owner, other, both)


def alone(path: str, has: Mapping[str, CpuSet]) -> CpuSet:
    """The CPUs that only this cgroup, its ancestors and its descendants have."""
    mine = has[path]
    return mine - CpuSet.union(one.cpus for one in shared({path: mine}, has))
