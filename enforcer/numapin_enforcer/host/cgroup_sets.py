"""The CPUs of cgroups beside the kubelet's, and what they must become. Does no I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.tree import parent


@dataclass(frozen=True, slots=True)
class HostCgroup:
    """A cgroup beside the kubelet's, as the kernel has it.

    Attributes:
        path: relative to the mount.
        id: that of its folder: one that is made again has another.
        cpus: what it asks for; on v2 an empty set is "as the parent".
        effective_cpus: what its processes may use.
        has_cpuset: whether it has a set of its own at all.
    """

    path: str
    id: int
    cpus: CpuSet
    effective_cpus: CpuSet
    has_cpuset: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """What a cgroup had before the enforcer wrote it first.

    Attributes:
        cpus: what it asked the kernel for.
        allowed: AllowedCPUs of its unit; None if systemd has no unit for it.
        id: see `HostCgroup`.
    """

    cpus: CpuSet
    allowed: CpuSet | None
    id: int


@dataclass(frozen=True, slots=True)
class KeepOff:
    """What processes of no pod must keep off.

    Attributes:
        exclusive: these CPUs; if empty, every cgroup gets what it had before.
        least: the reserved and the shared CPUs: what a cgroup gets that would have none left.
        pod_trees: the cgroups of the kubelet's pods, which are never written here.
    """

    exclusive: CpuSet = CpuSet()
    least: CpuSet = CpuSet()
    pod_trees: tuple[str, ...] = ()


def targets(
    found: Mapping[str, Found],
    cgroups: Mapping[str, HostCgroup],
    wanted: KeepOff,
    every: CpuSet,
) -> dict[str, CpuSet]:
    """What each cgroup must ask for that is there and was saved; never what is exclusive.

    Args:
        found: what they had before.
        cgroups: what they have now.
        wanted: what they must keep off.
        every: all CPUs that a cgroup may ask for: on v1 those that are online.
    """
    made: dict[str, CpuSet] = {}
    for path in sorted(found.keys() & cgroups.keys()):
        before = found[path]
        if not wanted.exclusive:
            made[path] = before.cpus & every
            continue
        had = (before.cpus or before.allowed or every) & every
        made[path] = had - wanted.exclusive or made.get(parent(path)) or wanted.least
    return made


def not_saved(
    cgroups: Mapping[str, HostCgroup],
    allowed: Mapping[str, CpuSet | None],
    found: Mapping[str, Found],
) -> dict[str, Found]:
    """What cgroups have that are not in `found`.

    One that was made below a cgroup which was narrowed has got the narrowed set (v1): it counts as
    having had what that one had.

    Args:
        cgroups: what they have now.
        allowed: AllowedCPUs of units, None for others; a cgroup that is missing here is left out.
        found: what was saved.
    """
    made: dict[str, Found] = {}
    for path in sorted((cgroups.keys() & allowed.keys()) - found.keys()):
        one, above = cgroups[path], parent(path)
        saved = found.get(above) or made.get(above)
        is_copy = saved is not None and one.cpus == cgroups[above].cpus
        cpus = saved.cpus if saved is not None and is_copy else one.cpus
        made[path] = Found(cpus, allowed[path], one.id)
    return made


def writes(
    cgroups: Mapping[str, HostCgroup], wanted: Mapping[str, CpuSet]
) -> Iterator[tuple[str, CpuSet]]:
    """The writes that lead to `wanted`, in an order that the kernel takes.

    On v1 a child has no CPU that its parent has not: parents grow first, and children shrink first.
    """
    nested = {one for path in wanted if (above := parent(path)) in wanted for one in (path, above)}
    has = {path: cgroups[path].cpus for path in wanted}
    for path in sorted(nested):
        if (both := has[path] | wanted[path]) != has[path]:
            yield path, both
            has[path] = both
    for path in sorted(wanted, reverse=True):
        if has[path] != wanted[path]:
            yield path, wanted[path]
