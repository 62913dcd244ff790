"""systemd as the enforcer uses it: its calls, its errors and what a slice has. Does no I/O."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet


@dataclass(frozen=True, slots=True)
class SliceSets:
    """AllowedCPUs and AllowedMemoryNodes of a slice; an empty set is no restriction.

    Source: systemd.resource-control(5).
    """

    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()


@dataclass(frozen=True, slots=True)
class UnitCpus:
    """AllowedCPUs of a unit, and its cgroup: empty while it has none."""

    cpus: CpuSet
    cgroup: str


class SystemdError(Exception):
    """systemd did not do what it was asked; `reason` goes into a condition."""

    reason: ClassVar[Reason] = Reason.SYSTEMD_REFUSED


class SystemdUnavailableError(SystemdError):
    """The bus does not answer, or not in time."""

    reason = Reason.SYSTEMD_UNAVAILABLE


class SystemdOutOfReachError(SystemdUnavailableError):
    """This process may not ask, as the node is set up: a note of a node that is well."""


class SystemdAbsentError(SystemdOutOfReachError):
    """The socket does not exist: it was not mounted, or this systemd has no D-Bus."""


class SystemdDeniedError(SystemdOutOfReachError):
    """The kernel, the bus or systemd denies it, as AppArmor and SELinux do to containers."""


class SystemdRefusedError(SystemdError):
    """systemd answered with an error, or has another set than it was sent."""


class ServiceManager(Protocol):
    """systemd, as the enforcer uses it. The last part of a `cgroup` path is the unit's name."""

    async def read(self, cgroup: str) -> SliceSets | None:
        """The sets of a slice, which systemd has written by now; None if it has no such slice.

        Raises:
            SystemdError: it did not answer.
        """
        ...

    async def write(self, cgroup: str, sets: SliceSets) -> None:
        """Set a slice's sets until the next boot; systemd writes the cgroup as well.

        Raises:
            SystemdError: it refused; or it did not answer, and may have done it.
        """
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class UnitManager(Protocol):
    """systemd, as far as units of any kind with a cgroup have AllowedCPUs.

    All methods raise SystemdError: it did not answer, or refused.
    """

    async def unit_cpus(self, unit: str) -> UnitCpus | None:
        """AllowedCPUs of a unit, whether it is active or not; None if it can have none."""
        ...

    async def set_unit_cpus(self, unit: str, cpus: CpuSet) -> None:
        """Set AllowedCPUs until the next boot; if the unit is active, systemd writes its cgroup."""
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class Systemd(ServiceManager, UnitManager, Protocol):
    """All of it."""
