"""Keeps cgroups beside the kubelet's off CPUs, and gives them back: look, save, write, look again.

systemd is told where it makes the cgroups, since it writes what it has again at any time. A cgroup
that was set once does not wait for it: it is written as well. The kernel is asked what came of it.
"""

import asyncio
import errno
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.text import first_texts
from numapin_enforcer.cgroups.errors import CgroupError, CgroupVanishedError
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.host.cgroup_sets import (
    Found,
    HostCgroup,
    KeepOff,
    not_saved,
    targets,
    writes,
)
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.host.units import Units
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.systemd.interface import SystemdError, SystemdRefusedError

SHOWN: Final = 3
"""How many cgroups a message names."""

NO_CPUSET: Final = "it has no cpuset of its own (write +cpuset to cgroup.subtree_control above it)"


class Files(Protocol):
    """See `HostFiles`."""

    version: Version

    @property
    def is_systemd(self) -> bool:
        """Whether systemd makes the cgroups, and writes their cpusets."""
        ...

    def is_unit(self, path: str) -> bool:
        """Whether the cgroup has the name of a unit."""
        ...

    def every_cpu(self) -> CpuSet:
        """The CPUs that a cgroup may ask for."""
        ...

    def read(self, pod_trees: tuple[str, ...]) -> Mapping[str, HostCgroup]:
        """The cgroups beside those of pods and their ancestors."""
        ...

    def write(self, path: str, cpus: CpuSet) -> None:
        """Write a set."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """What came of it, by the kernel's answer.

    Attributes:
        usable: the CPUs that processes in these cgroups may use.
        problems: what was not done, and why; it is tried again.
        drifts: what others had changed, and is as before.
        cgroups: the paths of all of them.
    """

    usable: CpuSet = CpuSet()
    problems: tuple[str, ...] = ()
    drifts: tuple[Drift, ...] = ()
    cgroups: tuple[str, ...] = ()


@dataclass(slots=True)
class _Round:
    """One call of `bring`."""

    wanted: KeepOff
    every: CpuSet
    cgroups: Mapping[str, HostCgroup]
    saved: frozenset[str]
    """The cgroups that were saved before: they have been written, as a rule."""
    allowed: dict[str, CpuSet | None] = field(default_factory=dict)
    """AllowedCPUs of units, None for other cgroups; without those of which it is not known."""
    targets: dict[str, CpuSet] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class HostKeeper:
    """The cgroups of one node that hold no pods."""

    def __init__(self, files: Files, found: FoundCgroups, units: Units) -> None:
        self._files, self.found, self._units = files, found, units
        self._in_force: Mapping[str, tuple[int, CpuSet]] = {}
        """What cgroups have had, by the id of their folder."""

    async def bring(self, wanted: KeepOff) -> Look:
        """Bring all cgroups to what is wanted.

        Raises:
            CgroupError: they could not be read.
        """
        every, cgroups = await asyncio.to_thread(self._read, wanted)
        one = _Round(wanted, every, cgroups, frozenset(self.found.cgroups))
        await self._ask_systemd(one)
        await asyncio.to_thread(self._save, one)
        one.targets = targets(self._may_be_written(one), one.cgroups, wanted, every)
        drifts = self._drifts(one)
        if await self._tell_systemd(one):
            one.cgroups = await asyncio.to_thread(self._files.read, wanted.pod_trees)
            drifts = self._drifts(one) | drifts  # others may have written meanwhile
        await asyncio.to_thread(self._write, one)
        return self._end(one, drifts)

    async def close(self) -> None:
        """End the connection to systemd."""
        await self._units.close()

    def _read(self, wanted: KeepOff) -> tuple[CpuSet, Mapping[str, HostCgroup]]:
        return self._files.every_cpu(), self._files.read(wanted.pod_trees)

    async def _ask_systemd(self, one: _Round) -> None:
        """Also of units that were saved and are not active: they keep what they were sent."""
        paths = sorted({*one.cgroups, *self.found.cgroups})
        units = list(filter(self._files.is_unit, paths)) if self._files.is_systemd else []
        one.allowed = dict.fromkeys(path for path in paths if path not in units)
        for count, path in enumerate(units):
            try:
                one.allowed[path] = await self._units.allowed(path, one.cgroups.get(path))
            except SystemdRefusedError as error:
                one.problems.append(f"{path}: {error}")
            except SystemdError as error:
                one.problems.append(f"{first_texts(units[count:], SHOWN)}: {error}")
                return

    def _save(self, one: _Round) -> None:
        """Forget what is gone, and save what will be written."""
        try:
            self.found.drop(self._gone(one))
            if one.wanted.exclusive:
                self.found.add(not_saved(one.cgroups, one.allowed, self.found.cgroups))
        except OSError as error:
            why = f"what they had could not be saved in the state folder: {error}"
            new = sorted(one.cgroups.keys() - self.found.cgroups.keys())
            one.problems.append(f"{first_texts(new, SHOWN)}: {why}")

    def _gone(self, one: _Round) -> list[str]:
        """Saved cgroups of which nothing is left that was written to them."""
        gone = []
        for path, saved in self.found.cgroups.items():
            now, allowed = one.cgroups.get(path), one.allowed.get(path)
            if path not in one.allowed:
                continue
            if now is None:
                is_gone = allowed in (None, saved.allowed)
            else:
                is_gone = allowed is None and saved.allowed is None and now.id != saved.id
            if is_gone:
                gone.append(path)
        return gone

    def _may_be_written(self, one: _Round) -> Mapping[str, Found]:
        """Not those of which systemd does not say what they have, unless they were set before."""
        return {
            path: saved
            for path, saved in self.found.cgroups.items()
            if path in one.allowed or (one.wanted.exclusive and path in one.saved)
        }

    def _drifts(self, one: _Round) -> dict[str, Drift]:
        """What had its set, must still have it, and does not, by path."""
        drifts = {}
        for path, meant in one.targets.items() if one.wanted.exclusive else ():
            now, allowed = one.cgroups.get(path), one.allowed.get(path)
            if now is None or self._in_force.get(path) != (now.id, meant) or not now.has_cpuset:
                continue
            has = now.cpus if now.cpus != meant or allowed is None else allowed
            if has != meant:
                sets = ((has or one.every, MemSet()), (meant, MemSet()))
                drifts[path] = Drift(path, *sets, is_of_host=True)
        return drifts

    async def _tell_systemd(self, one: _Round) -> bool:
        """Whether systemd was sent anything: then the kernel has others by now."""
        sent = dict(self._unsent(one))
        pending = dict(sent)
        for path, must in sent.items():
            try:
                await self._units.set(path, must)
            except SystemdRefusedError as error:
                one.problems.append(f"{path}: {error}")
            except SystemdError as error:
                one.problems.append(f"{first_texts([*pending], SHOWN)}: {error}")
                break
            else:
                one.allowed[path] = must
                del pending[path]
        for path in pending:
            if not one.wanted.exclusive or path not in one.saved:
                one.targets.pop(path, None)  # what systemd does not have it would write over
        return bool(sent)

    def _unsent(self, one: _Round) -> Iterator[tuple[str, CpuSet]]:
        for path, saved in self.found.cgroups.items():
            must = one.targets.get(path) if one.wanted.exclusive else saved.allowed
            if must is not None and one.allowed.get(path) not in (None, must):
                yield path, must

    def _write(self, one: _Round) -> None:
        """Write what the kernel does not have, and read all again."""
        there = {path: cpus for path, cpus in one.targets.items() if path in one.cgroups}
        usable = {path: cpus for path, cpus in there.items() if one.cgroups[path].has_cpuset}
        if one.wanted.exclusive:
            one.problems += [f"{path}: {NO_CPUSET}" for path in sorted(there.keys() - usable)]
        for path, cpus in writes(one.cgroups, usable):
            self._units.doubt(path)
            try:
                self._write_one(path, cpus, one.every)
            except CgroupVanishedError:
                continue
            except CgroupError as error:
                one.problems.append(str(error))
        one.cgroups = self._files.read(one.wanted.pod_trees)

    def _write_one(self, path: str, cpus: CpuSet, every: CpuSet) -> None:
        """Linux does not let a cgroup with processes ask for nothing again: then for all CPUs."""
        try:
            self._files.write(path, cpus)
        except CgroupError as error:
            if cpus or error.number != errno.ENOSPC:
                raise
            self._files.write(path, every)

    def _end(self, one: _Round, drifts: Mapping[str, Drift]) -> Look:
        done = {path for path, cpus in one.targets.items() if self._has(one, path, cpus)}
        self._in_force = {
            path: (one.cgroups[path].id, one.targets[path])
            for path in {*done, *self._changed_since(one, drifts)}
            if path in one.cgroups
        }
        if not one.wanted.exclusive:
            self._forget(one, done)
        self._units.keep(one.cgroups)
        return Look(
            CpuSet.union(now.effective_cpus for now in one.cgroups.values()),
            tuple(one.problems),
            tuple(drifts.values()),
            tuple(sorted(one.cgroups)),
        )

    def _changed_since(self, one: _Round, drifts: Mapping[str, Drift]) -> Iterator[str]:
        """What had its set when the round began, and others have changed since: a drift to come."""
        for path, cpus in one.targets.items():
            now, had = one.cgroups.get(path), self._in_force.get(path)
            if now is not None and had == (now.id, cpus) and path not in drifts:
                yield path

    def _has(self, one: _Round, path: str, cpus: CpuSet) -> bool:
        now = one.cgroups.get(path)
        if now is None or not now.has_cpuset:
            return not one.wanted.exclusive
        return now.cpus == cpus or (not cpus and now.cpus == one.every)

    def _forget(self, one: _Round, done: Collection[str]) -> None:
        """What has again what it had, also those whose unit is not active."""
        inactive = {
            path
            for path, saved in self.found.cgroups.items()
            if path not in one.cgroups and one.allowed.get(path, CpuSet()) == saved.allowed
        }
        try:
            self.found.drop({*done, *inactive})
        except OSError as error:
            one.problems.append(f"what they had could not be forgotten: {error}")
