"""Sends the cpusets of the kubelet's slices to systemd, in the background.

The enforcer writes a cgroup first; systemd then writes the same. While systemd has an older set it
may write that one at any moment: `stale_cpus` says which CPUs, and none of them is reported
exclusive.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_api.cpuset import CpuSet
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.systemd.interface import (
    ServiceManager,
    SliceSets,
    SystemdError,
    SystemdOutOfReachError,
    SystemdRefusedError,
)
from numapin_enforcer.systemd.slices import unit_name

LOG: Final = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 0.2
"""How long a status waits for an update of systemd, which takes some milliseconds."""


class SliceUpdater:
    """What systemd must have for the slices, and what it has."""

    def __init__(
        self,
        connect: Callable[[], ServiceManager],
        wake: asyncio.Event,
        clock: Clock | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Take what the background task needs.

        Args:
            connect: called once, before the first update.
            wake: set when an update ends, fails, or takes longer than a status waits.
            clock: for the back-off; the machine's clock by default.
            patience_seconds: see `PATIENCE_SECONDS`.
        """
        self._connect, self._wake = connect, wake
        self._patience_seconds = patience_seconds
        self._systemd: ServiceManager | None = None
        self._wanted: dict[str, SliceSets] = {}
        self._acknowledged: dict[str, SliceSets] = {}
        """What systemd has, as far as that is certain."""
        self._is_patient = False
        self.stale_cpus: Mapping[str, CpuSet] = {}
        """Cgroup to the CPUs that systemd may write to it; replaced, never changed in place."""
        self._worker = Worker(
            "slices",
            self._update,
            expected=(SystemdError,),
            failure="systemd does not have the slices' cpusets, it will be retried",
            wake=wake.set,
            clock=clock or SystemClock(),
        )

    @property
    def problem(self) -> Exception | None:
        """Why systemd does not have what it must have; it is retried."""
        return self._worker.problem if self._pending() else None

    @property
    def finishes_soon(self) -> bool:
        """Whether an update is expected to end soon; delay the status until it does."""
        return self._is_patient and self.problem is None

    @property
    def note(self) -> str:
        """The message of a healthy node whose systemd cannot be reached; else empty."""
        if not isinstance(self.problem, SystemdOutOfReachError):
            return ""
        risk = "a QoS class without pods may lose its fence until the next pass"
        return f"systemd is not updated: {self.problem}; {risk}"

    @property
    def may_write_older(self) -> bool:
        """Whether systemd may still write sets of before, until a call that will be tried again."""
        return bool(self._pending()) and not isinstance(self.problem, SystemdOutOfReachError)

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps systemd from having what it must have; one out of reach is no obstacle."""
        problem = self.problem
        if problem is None:
            slices = ", ".join(map(unit_name, self._pending()))
            message = f"systemd is being sent the CPUs of {slices}"
            return (Obstacle(Reason.APPLYING, message),) if slices else ()
        if isinstance(problem, SystemdOutOfReachError):
            return ()
        if not isinstance(problem, SystemdError):
            return (internal_error("updating systemd", problem),)
        return (Obstacle(problem.reason, f"systemd was not updated: {problem}"),)

    def want(self, sets: Mapping[str, SliceSets | None]) -> None:
        """Have systemd use these sets, by cgroup; None leaves what was wanted before."""
        for deleted in self._wanted.keys() - sets.keys():
            del self._wanted[deleted]
            self.note_external_change(deleted)
        fresh = {path: one for path, one in sets.items() if one is not None}
        is_news = any(self._wanted.get(path) != one for path, one in fresh.items())
        self._is_patient |= is_news
        self._wanted |= fresh
        if not self._pending():
            self._is_patient = False
        else:
            self._worker.request(skip_backoff=is_news or self.problem is None)

    def note_external_change(self, cgroup: str) -> None:
        """This cgroup was written externally, or deleted: systemd may have another set now."""
        self._acknowledged.pop(cgroup, None)
        if cgroup not in self._wanted and cgroup in self.stale_cpus:
            self._set_stale(cgroup, CpuSet())

    def pause(self) -> None:
        """Send nothing for now; systemd keeps what it has."""
        self._wanted, self._is_patient = {}, False

    async def run(self) -> None:
        """Send what is wanted until cancelled; a failure is retried."""
        try:
            await self._worker.run()
        finally:
            if self._systemd is not None:
                await self._systemd.close()

    def _pending(self) -> list[str]:
        return [path for path, one in self._wanted.items() if self._acknowledged.get(path) != one]

    async def _update(self) -> None:
        pending = self._pending()
        if not pending:
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._patience_seconds, self._lose_patience)
        try:
            if self._systemd is None:
                self._systemd = self._connect()
            for path in pending:
                await self._update_slice(self._systemd, path)
        finally:
            self._is_patient = False
            timer.cancel()
            self._wake.set()

    async def _update_slice(self, systemd: ServiceManager, path: str) -> None:
        """Update one slice; another set may be wanted by the time it is sent."""
        found = await systemd.read(path)
        self._set_stale(path, found.cpus if found else CpuSet())
        sets = self._wanted.get(path)
        if sets is None:
            return
        if found is not None and found != sets:
            self._set_stale(path, found.cpus | sets.cpus)
            await systemd.write(path, sets)
            again = await systemd.read(path)
            if again is not None and again != sets:
                raise SystemdRefusedError(f"sent {sets} for {path}, systemd has {again}")
            self._set_stale(path, sets.cpus)
            LOG.info("systemd has a slice's cpuset", extra={"slice": path, "cpus": sets.cpus})
        self._acknowledged[path] = sets

    def _set_stale(self, path: str, cpus: CpuSet) -> None:
        if self.stale_cpus.get(path, CpuSet()) != cpus:
            self.stale_cpus = {**self.stale_cpus, path: cpus}

    def _lose_patience(self) -> None:
        self._is_patient = False
        self._wake.set()
