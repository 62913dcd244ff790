"""Keeps processes of no pod off exclusive CPUs, in the background."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_api.cpuset import CpuSet
from numapin_api.text import cut_text, first_texts
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.host.keeper import SHOWN, HostKeeper, Look
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.systemd.interface import SystemdError

PATIENCE_SECONDS: Final = 0.2
"""How long a status waits for an update, which takes some milliseconds."""

PAUSE_SECONDS: Final = 0.05
"""The least time between two updates: anything that may write a cgroup can cause events."""

MOST_MESSAGE: Final = 1024

_EXPECTED: Final = (CgroupError, SystemdError, OSError)


class NotKeptError(Exception):
    """Some cgroups were not set; the message says which, and why."""


class Watch(Protocol):
    """See `HostWatch`."""

    def fileno(self) -> int:
        """The descriptor that is readable while events are queued."""
        ...

    def cover(self, folders: tuple[str, ...], cgroups: tuple[str, ...]) -> None:
        """Watch these folders for new cgroups, and the sets of these cgroups."""
        ...

    def drain(self) -> None:
        """Take all events off the queue."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class Roots(Protocol):
    """See `RootTasks`."""

    def look(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Names of some processes in these cgroups themselves."""
        ...


class HostUpdater:
    """What processes of no pod must keep off, and what came of it."""

    def __init__(
        self,
        keeper: HostKeeper,
        roots: Roots,
        watch: Callable[[], Watch],
        wake: asyncio.Event,
        clock: Clock | None = None,
    ) -> None:
        """Args: `watch` is called when CPUs are to be kept free; `wake` is set after a change."""
        self._keeper, self._roots, self._open_watch = keeper, roots, watch
        self._wake, self._clock = wake, clock or SystemClock()
        self._wanted = KeepOff()
        self._watch: Watch | None = None
        self._look: Look | None = None
        self._in_root: tuple[str, ...] = ()
        self._drifts: list[Drift] = []
        self._is_patient = False
        self._worker = Worker(
            "host-processes",
            self._update,
            expected=(*_EXPECTED, NotKeptError),
            failure="not all processes of the host keep off exclusive CPUs, it will be retried",
            wake=wake.set,
            clock=self._clock,
        )

    def is_needed(self) -> bool:
        """Whether anything must be kept or given back."""
        return bool(self._wanted.exclusive or self._keeper.found.cgroups)

    @property
    def finishes_soon(self) -> bool:
        """Whether an update is expected to end soon; delay the status until it does."""
        return self._is_patient and self._worker.problem is None

    @property
    def kept_off(self) -> CpuSet:
        """The exclusive CPUs that no process of the host may use, by the kernel's answer."""
        if self._in_root or self._look is None:
            return CpuSet()
        return self._wanted.exclusive - self._look.usable

    @property
    def message(self) -> str:
        """What may use exclusive CPUs nevertheless, and why; empty if nothing may."""
        texts = list(self._look.problems) if self._look is not None else []
        problem = self._worker.problem
        if problem is not None and not isinstance(problem, NotKeptError):
            texts.append(str(problem))
        if self._in_root and self._wanted.exclusive:
            named = ", ".join(self._in_root)
            texts.append(f"no cpuset restricts processes in the root cgroup, such as {named}")
        return cut_text(first_texts(texts, SHOWN, "; "), MOST_MESSAGE) if texts else ""

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps cgroups from having again what they had."""
        problem = self._worker.problem
        if problem is None or self._wanted.exclusive:
            return ()
        if not isinstance(problem, (*_EXPECTED, NotKeptError)):
            return (internal_error("giving CPUs back to processes of the host", problem),)
        why = f"cgroups of the host have not all their CPUs again: {self.message}"
        return (Obstacle(Reason.HOST_PROCESSES_LEFT, why),)

    def pop_drifts(self) -> list[Drift]:
        """What others had changed, and is again as it must be, since the last call."""
        drifts, self._drifts = self._drifts, []
        return drifts

    def want(self, wanted: KeepOff, *, resynced: bool) -> None:
        """Keep all cgroups of the host off these CPUs, and give all others back.

        Args:
            wanted: see `KeepOff`.
            resynced: look again although nothing else is wanted.
        """
        is_news = wanted != self._wanted
        self._wanted = wanted
        if not self.is_needed():
            self._look, self._in_root = None, ()
        elif is_news or resynced:
            self._is_patient |= is_news
            self._worker.request(skip_backoff=is_news)

    async def run(self) -> None:
        """Keep CPUs free until cancelled; a failure is retried."""
        try:
            await self._worker.run()
        finally:
            self._end_watch()
            await self._keeper.close()

    async def _update(self) -> None:
        if not self.is_needed():
            return
        timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._lose_patience)
        before = self._said()
        try:
            look = await self._bring(self._wanted)
        finally:
            self._is_patient = False
            timer.cancel()
        if self._said() != before:
            self._wake.set()
        if not self.is_needed():
            self._end_watch()
            await self._keeper.close()
        if look.problems:
            raise NotKeptError("; ".join(look.problems))
        await self._clock.sleep(PAUSE_SECONDS)

    async def _bring(self, wanted: KeepOff) -> Look:
        folders = _folders(wanted.pod_trees)
        if wanted.exclusive:
            self._begin_watch(folders)
        look = await self._keeper.bring(wanted)
        self._drifts += look.drifts
        self._look = look
        if wanted.exclusive:
            self._in_root = await asyncio.to_thread(self._roots.look, folders)
            self._begin_watch(folders)
        return look

    def _said(self) -> tuple[object, ...]:
        return self.kept_off, self.message, self._is_patient, len(self._drifts)

    def _begin_watch(self, folders: tuple[str, ...]) -> None:
        if self._watch is None:
            self._watch = self._open_watch()
            asyncio.get_running_loop().add_reader(self._watch.fileno(), self._on_events)
        self._watch.cover(folders, self._look.cgroups if self._look is not None else ())

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            asyncio.get_running_loop().remove_reader(watch.fileno())
            watch.close()

    def _on_events(self) -> None:
        if self._watch is not None:
            self._watch.drain()
        self._worker.request()

    def _lose_patience(self) -> None:
        self._is_patient = False
        self._wake.set()


def _folders(pod_trees: tuple[str, ...]) -> tuple[str, ...]:
    """The cgroups beside whose children the pods' are: the root, and what holds the pods."""
    above = {"", *(path[:at] for path in pod_trees for at, one in enumerate(path) if one == "/")}
    return tuple(sorted(above))
