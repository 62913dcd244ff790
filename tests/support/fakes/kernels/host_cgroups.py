"""The top of a node's cgroups, and a systemd that makes some of them, with what each refuses."""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import error_of
from numapin_enforcer.cgroups.tree import Version, parent
from numapin_enforcer.host.cgroup_sets import HostCgroup
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.host.keeper import HostKeeper
from numapin_enforcer.host.units import Units
from numapin_enforcer.host.updater import HostUpdater
from numapin_enforcer.systemd.interface import UnitCpus
from support.fakes.manual_clock import ManualClock

UNIT_SUFFIXES = (".slice", ".scope", ".service")


@dataclass
class FakeHost:
    """Kernel and systemd. `step` is called before each thing that changes anything, and may raise.

    The kernel of v2 lets no cgroup with processes ask for nothing again (ENOSPC), unless `clears`;
    that of v1 keeps each child inside its parent.
    """

    every: CpuSet
    version: Version = Version.V2
    is_systemd: bool = True
    clears: bool = False
    cgroups: dict[str, HostCgroup] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    """Cgroups without a process."""
    properties: dict[str, CpuSet] = field(default_factory=dict)
    """AllowedCPUs of systemd's units, active or not."""
    failures: dict[str, Exception] = field(default_factory=dict)
    """By path: what the kernel answers to writes."""
    unit_failures: dict[str, Exception] = field(default_factory=dict)
    """By unit: what systemd answers when it is told."""
    failure: Exception | None = None
    """What each question to systemd raises."""
    step: Callable[[str], None] = lambda _: None
    calls: list[str] = field(default_factory=list)
    writes: list[tuple[str, CpuSet]] = field(default_factory=list)
    reads: int = 0
    before_read: dict[int, Callable[[], object]] = field(default_factory=dict)
    """What others do right before a reading, by its number."""
    _ids: int = 0

    def make(self, path: str, cpus: str = "", *, unit: bool | None = None) -> None:
        """A cgroup is made; by systemd with what its unit has."""
        asked = CpuSet.parse(cpus)
        if self._is_unit(path) if unit is None else unit:
            name = path.rpartition("/")[2]
            asked = self.properties.setdefault(name, asked)
        self._ids += 1
        self.cgroups[path] = HostCgroup(path, self._ids, asked, asked or self.every)

    def vanish(self, path: str) -> None:
        """A cgroup ends; its unit keeps what was set."""
        del self.cgroups[path]

    def _is_unit(self, path: str) -> bool:
        return self.is_systemd and self.is_unit(path)

    def is_unit(self, path: str) -> bool:
        return path.endswith(UNIT_SUFFIXES)

    def every_cpu(self) -> CpuSet:
        return self.every

    def read(self, pod_trees: tuple[str, ...]) -> Mapping[str, HostCgroup]:
        self.reads += 1
        self.before_read.pop(self.reads, bool)()
        return {path: one for path, one in self.cgroups.items() if path not in pod_trees}

    def write(self, path: str, cpus: CpuSet) -> None:
        self.step(f"write {path} {cpus}")
        if path in self.failures:
            raise self.failures[path]
        self.put(path, cpus)
        self.writes.append((path, cpus))

    def put(self, path: str, cpus: CpuSet) -> None:
        """Anybody writes; the kernel may refuse."""
        if path not in self.cgroups:
            raise error_of(path, str(cpus), OSError(errno.ENOENT, "gone"))
        if number := self._refusal(path, cpus):
            raise error_of(path, str(cpus), OSError(number, "refused"))
        self.cgroups[path] = replace(
            self.cgroups[path], cpus=cpus, effective_cpus=cpus or self.every
        )

    def _refusal(self, path: str, cpus: CpuSet) -> int:
        if not cpus <= self.every:
            return errno.EINVAL
        cleared = not cpus and bool(self.cgroups[path].cpus) and path not in self.empty
        if cleared and not self.clears:
            return errno.ENOSPC
        if self.version is Version.V2:
            return 0
        above = self.cgroups.get(parent(path))
        if above is not None and not cpus <= above.cpus:
            return errno.EACCES
        below = [one.cpus for one in self.cgroups.values() if parent(one.path) == path]
        return 0 if all(one <= cpus for one in below) else errno.EBUSY

    async def unit_cpus(self, unit: str) -> UnitCpus | None:
        self.calls.append(unit)
        if self.failure is not None:
            raise self.failure
        if unit not in self.properties:
            return UnitCpus(CpuSet(), "")  # as systemd answers for a name that it does not know
        return UnitCpus(self.properties[unit], self._path(unit))

    async def set_unit_cpus(self, unit: str, cpus: CpuSet) -> None:
        self.step(f"set {unit} {cpus}")
        if unit in self.unit_failures:
            raise self.unit_failures[unit]
        self.set_property(unit, cpus)

    def set_property(self, unit: str, cpus: CpuSet) -> None:
        """As `systemctl set-property --runtime`: a refusal of the kernel is only logged."""
        self.properties[unit] = cpus
        path = self._path(unit)
        if path and not self._refusal(path, cpus):
            self.put(path, cpus)

    def _path(self, unit: str) -> str:
        return next((one for one in self.cgroups if one.rpartition("/")[2] == unit), "")

    async def close(self) -> None:
        self.calls.append("close")

    @property
    def sets(self) -> dict[str, str]:
        """What each cgroup asks for."""
        return {path: str(one.cpus) for path, one in self.cgroups.items()}


class FakeWatch:
    """Events that a test makes."""

    def __init__(self) -> None:
        self._events = os.eventfd(0, os.EFD_NONBLOCK)
        self.covered: tuple[str, ...] = ()
        self.is_open = True

    def happen(self) -> None:
        """Something was written or made."""
        os.eventfd_write(self._events, 1)

    def fileno(self) -> int:
        return self._events

    def cover(self, folders: tuple[str, ...], cgroups: tuple[str, ...]) -> None:
        self.covered = (*folders, *cgroups)

    def drain(self) -> None:
        os.eventfd_read(self._events)

    def close(self) -> None:
        os.close(self._events)
        self.is_open = False


@dataclass
class FakeRoots:
    """Processes that no cgroup restricts."""

    names: tuple[str, ...] = ()

    def look(self, _paths: tuple[str, ...]) -> tuple[str, ...]:
        return self.names


@dataclass
class HostWorld:
    """A host with everything that watches and reads it."""

    host: FakeHost
    folder: Path
    wake: asyncio.Event
    clock: ManualClock
    roots: FakeRoots = field(default_factory=FakeRoots)
    watches: list[FakeWatch] = field(default_factory=list)

    def keeper(self) -> HostKeeper:
        """That of a process that begins."""
        found, units = FoundCgroups(self.folder, "boot"), Units(lambda: self.host, self.clock)
        return HostKeeper(self.host, found, units)

    def updater(self) -> HostUpdater:
        """That of a process that begins."""
        return HostUpdater(self.keeper(), self.roots, self._watch, self.wake, self.clock)

    def _watch(self) -> FakeWatch:
        self.watches.append(FakeWatch())
        return self.watches[-1]
