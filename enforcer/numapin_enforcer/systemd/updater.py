"""Edge: has systemd remember what the kubelet's slices have, in the background.

The cgroup is always written first and by us; systemd then writes the same. While it remembers
something older it may write that at any moment: `stale_cpus` says what, and nobody is reported to
own a CPU that is in it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from numapin_api.conditions import Obstacle, Reason
from numapin_api.cpuset import CpuSet
from numapin_daemon.backoff import Backoff
from numapin_enforcer.systemd.slices import (
    ServiceManager,
    SliceSets,
    SystemdAbsentError,
    SystemdError,
    SystemdRefusedError,
    unit_name,
)

LOG: Final = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.2
"""Telling systemd takes some milliseconds; a status waits so long for it, and no longer."""

FIRST_RETRY_SECONDS: Final = 0.5
"""How long to wait at most before systemd is asked again; doubles."""


class SliceUpdater:
    """What systemd should remember, and what it does."""

    def __init__(self, connect: Callable[[], ServiceManager], wake: asyncio.Event) -> None:
        """Args: `connect` is called once, when there is something to tell."""
        self._connect, self._wake = connect, wake
        self._systemd: ServiceManager | None = None
        self._wanted: dict[str, SliceSets] = {}
        self._told: dict[str, SliceSets] = {}
        self._changed = asyncio.Event()
        self._patient = False
        self.stale_cpus: Mapping[str, CpuSet] = {}
        """Cgroup to the CPUs that systemd may give it; another object whenever that changes."""
        self.problem: SystemdError | None = None
        """Why systemd does not remember what it should; tried again."""

    @property
    def finishes_soon(self) -> bool:
        """Whether systemd is being told and will have been at once: what it is then is news."""
        return self._patient and self.problem is None

    @property
    def note(self) -> str:
        """What a status says where there is no systemd to be told."""
        if not isinstance(self.problem, SystemdAbsentError):
            return ""
        return f"systemd is not told: {self.problem}"

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps systemd from remembering, where it is there."""
        if isinstance(self.problem, SystemdAbsentError):
            return ()
        if self.problem is None:
            waiting = ", ".join(map(unit_name, self._pending()))
            told = f"systemd is being told what {waiting} may use"
            return (Obstacle(Reason.APPLYING, told),) if waiting else ()
        return (Obstacle(self.problem.reason, f"systemd was not told: {self.problem}"),)

    def want(self, sets: Mapping[str, SliceSets | None]) -> None:
        """Have systemd remember these, by cgroup; None leaves what was wanted before."""
        for gone in self._wanted.keys() - sets.keys():
            del self._wanted[gone]
            self.note_external_change(gone)
        fresh = {path: one for path, one in sets.items() if one is not None}
        news = any(self._wanted.get(path) != one for path, one in fresh.items())
        self._patient |= news
        self._wanted |= fresh
        if not self._pending():
            self._patient, self.problem = False, None
        elif news or self.problem is None:
            self._changed.set()

    def note_external_change(self, cgroup: str) -> None:
        """Somebody wrote this cgroup, or it went: systemd may remember something else by now."""
        self._told.pop(cgroup, None)
        if cgroup not in self._wanted and cgroup in self.stale_cpus:
            self._linger(cgroup, CpuSet())

    def pause(self) -> None:
        """Tell nothing more; what systemd remembers stays."""
        self._wanted, self._patient, self.problem = {}, False, None

    async def run(self) -> None:
        """Tell what is wanted, until cancelled; tries again what did not work."""
        try:
            await self._keep_telling()
        finally:
            if self._systemd is not None:
                await self._systemd.close()

    async def _keep_telling(self) -> None:
        backoff = Backoff(base_seconds=FIRST_RETRY_SECONDS, cap_seconds=30.0)
        while True:
            wait_seconds = None if self.problem is None else backoff.next_seconds()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    await self._changed.wait()
            self._changed.clear()
            if self._pending():
                await self._tell_all()
                self._wake.set()
            if self.problem is None:
                backoff.reset()

    def _pending(self) -> list[str]:
        return [path for path, one in self._wanted.items() if self._told.get(path) != one]

    async def _tell_all(self) -> None:
        timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._lose_patience)
        try:
            if self._systemd is None:
                self._systemd = self._connect()
            for path in self._pending():
                await self._tell(self._systemd, path)
        except SystemdError as error:
            if type(error) is not type(self.problem):
                LOG.warning("systemd does not remember the slices' sets", extra={"error": error})
            self.problem = error
        else:
            self.problem = None
        finally:
            self._patient = False
            timer.cancel()

    async def _tell(self, systemd: ServiceManager, path: str) -> None:
        """Have one slice remembered; what is wanted may be another by the time it is sent."""
        found = await systemd.read(path)
        self._linger(path, found.cpus if found else CpuSet())
        sets = self._wanted.get(path)
        if sets is None:
            return
        if found is not None and found != sets:
            self._linger(path, found.cpus | sets.cpus)
            await systemd.write(path, sets)
            again = await systemd.read(path)
            if again is not None and again != sets:
                raise SystemdRefusedError(f"told {sets} of {path}, it remembers {again}")
            self._linger(path, sets.cpus)
            LOG.info("systemd remembers a slice's sets", extra={"slice": path, "cpus": sets.cpus})
        self._told[path] = sets

    def _linger(self, path: str, cpus: CpuSet) -> None:
        if self.stale_cpus.get(path, CpuSet()) != cpus:
            self.stale_cpus = {**self.stale_cpus, path: cpus}

    def _lose_patience(self) -> None:
        self._patient = False
        self._wake.set()
