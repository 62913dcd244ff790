"""AllowedCPUs of the units that have cgroups beside the kubelet's, asked no more than needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.host.cgroup_sets import HostCgroup
from numapin_enforcer.systemd.interface import SystemdRefusedError, UnitManager
from numapin_enforcer.systemd.slices import unit_name

CHECK_SECONDS: Final = 60.0
"""How long an answer holds while nobody writes the cgroup: systemd may lose a property silently,
as by `systemctl revert`, and writes the cgroup some time later."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What systemd said; `cpus` is None if it has no such unit, or with another cgroup."""

    cpus: CpuSet | None
    seen: HostCgroup | None
    until_seconds: float


class Units:
    """The units of one service manager."""

    def __init__(self, connect: Callable[[], UnitManager], clock: Clock | None = None) -> None:
        """Args: `connect` is called once, before the first question."""
        self._connect, self._clock = connect, clock or SystemClock()
        self._manager: UnitManager | None = None
        self._answers: dict[str, _Answer] = {}

    async def allowed(self, path: str, seen: HostCgroup | None) -> CpuSet | None:
        """AllowedCPUs of the unit with this cgroup; None if it is no unit's.

        Args:
            path: the cgroup.
            seen: as the kernel has it now; None if the unit is not active.

        Raises:
            SystemdError: it did not answer.
        """
        known = self._answers.get(path)
        now_seconds = self._clock.monotonic()
        if known is not None and known.seen == seen and now_seconds < known.until_seconds:
            return known.cpus
        self._answers.pop(path, None)
        found = await self._open().unit_cpus(unit_name(path))
        is_its = found is not None and found.cgroup == (path if seen is not None else "")
        return self._note(path, found.cpus if found is not None and is_its else None, seen)

    async def set(self, path: str, cpus: CpuSet) -> None:
        """Set AllowedCPUs of the unit with this cgroup; systemd has written it then.

        Raises:
            SystemdError: it did not answer, refused, or has another set.
        """
        self._answers.pop(path, None)
        manager, unit = self._open(), unit_name(path)
        await manager.set_unit_cpus(unit, cpus)
        found = await manager.unit_cpus(unit)
        if found is None or found.cpus != cpus:
            has = found.cpus if found is not None else "no such unit"
            raise SystemdRefusedError(f"sent {unit} AllowedCPUs={cpus}, systemd has {has}")
        self._note(path, cpus, None)

    def doubt(self, path: str) -> None:
        """The kernel had other CPUs than systemd said: ask again, others may have told it."""
        self._answers.pop(path, None)

    def keep(self, cgroups: Mapping[str, HostCgroup]) -> None:
        """The kernel has these now, after our own writes: what systemd said of them still holds.

        Not of a unit whose cgroup has other CPUs by now: somebody has set others meanwhile.
        """
        for path, known in list(self._answers.items()):
            now = cgroups.get(path)
            if now is not None and known.cpus in (None, now.cpus):
                self._answers[path] = _Answer(known.cpus, now, known.until_seconds)

    async def close(self) -> None:
        """End the connection, and forget all answers; the next question opens another."""
        self._answers.clear()
        manager, self._manager = self._manager, None
        if manager is not None:
            await manager.close()

    def _open(self) -> UnitManager:
        if self._manager is None:
            self._manager = self._connect()
        return self._manager

    def _note(self, path: str, cpus: CpuSet | None, seen: HostCgroup | None) -> CpuSet | None:
        self._answers[path] = _Answer(cpus, seen, self._clock.monotonic() + CHECK_SECONDS)
        return cpus
