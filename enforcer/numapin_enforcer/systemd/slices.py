"""Pure: what systemd should remember of the kubelet's slices, where it makes the cgroups.

Whenever any property of a slice changes (the kubelet sets the weight of a QoS class each minute) or
a container comes or goes, systemd writes what it remembers of it: a set that it was not told it
empties, and it takes the cpuset controller away where nobody asked for it. The kernel refuses to
empty a set while something runs there, so it is the fence of pods to come that goes. A pod's slice
has its processes from its beginning to its end, and scopes are the runtime's to tell.
Source: systemd src/core/cgroup.c, `unit_update_cgroup` and `cgroup_context_apply`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from numapin_api.conditions import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import Driver, Layout, Qos
from numapin_enforcer.cgroups.tree import Tree, Version
from numapin_enforcer.plan.desired import Desired

_CLASSES: Final = (Qos.BURSTABLE, Qos.BEST_EFFORT)


@dataclass(frozen=True, slots=True)
class SliceSets:
    """AllowedCPUs and AllowedMemoryNodes of a slice; an empty one is no restriction.

    Source: systemd.resource-control(5).
    """

    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()


class SystemdError(Exception):
    """systemd did not do what it was asked; `reason` goes into a condition."""

    reason: ClassVar[Reason] = Reason.SYSTEMD_REFUSED


class SystemdUnavailableError(SystemdError):
    """Nobody answers on the bus, or not in time."""

    reason = Reason.SYSTEMD_UNAVAILABLE


class SystemdAbsentError(SystemdUnavailableError):
    """There is no such socket: it was not mounted, or this systemd has no D-Bus."""


class SystemdRefusedError(SystemdError):
    """systemd answered with an error, or remembers something else than it was told."""


class ServiceManager(Protocol):
    """What remembers slices; `cgroup` is a path, and its last part the unit's name."""

    async def read(self, cgroup: str) -> SliceSets | None:
        """What it remembers, and by now has written; None where this cgroup is none of its.

        Raises:
            SystemdError: it did not answer.
        """
        ...

    async def write(self, cgroup: str, sets: SliceSets) -> None:
        """Have it remember, until the machine is started again; it writes the cgroup as well.

        Raises:
            SystemdError: it refused, or did not answer and may have done it.
        """
        ...

    async def close(self) -> None:
        """Nothing more is asked."""
        ...


def unit_name(cgroup: str) -> str:
    """The unit of a slice's cgroup. Source: systemd.slice(5)."""
    return cgroup.rpartition("/")[2]


def qos_slices(tree: Tree, layout: Layout) -> Iterator[str]:
    """The cgroups of which systemd is to be told; on v1 it has no part in cpusets."""
    if layout.driver is Driver.SYSTEMD and tree.version is Version.V2:
        paths = (layout.qos_path(qos) for qos in _CLASSES)
        yield from (path for path in paths if path in tree.cgroups)


def slice_sets(
    desired: Mapping[str, Desired], tree: Tree, layout: Layout
) -> dict[str, SliceSets | None]:
    """What systemd should remember of each slice: what the kernel was asked for and has.

    None is "as before": the kernel does not have there yet what it should.
    """
    sets: dict[str, SliceSets | None] = {}
    for path in qos_slices(tree, layout):
        found, meant = tree.cgroups[path], desired[path]
        has = (found.effective_cpus, found.effective_mems) == (meant.cpus, meant.mems)
        sets[path] = SliceSets(found.cpus, found.mems) if has else None
    return sets
