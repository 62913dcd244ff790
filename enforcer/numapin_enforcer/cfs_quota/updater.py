"""Removes CFS limits of exclusive containers in the background: a disk may be slow."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.cfs_quota.lifted import LiftedQuotas, QuotaFiles
from numapin_enforcer.cfs_quota.plan import UnlimitedCgroups
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.write import Quota

RECHECK_SECONDS: Final = (0.2, 1.2, 4.2)
"""When limits are read again after the set of containers has changed, or one was resized: a
runtime that is creating a container sets its limit after the cgroup exists."""

KUBELET_SECONDS: Final = 1.2
"""How long a container that is no longer exclusive, and its pod, stay without a limit before the
saved one is restored. If that is due to a resize, the kubelet writes a newer one, maybe at this
moment; and the runtime has the container's, and writes it with its new CPUs."""

_EARLY_SECONDS: Final = 0.001
"""A timer may end a little before its time."""

_EXPECTED: Final = (CgroupError, OSError)


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A kubelet's cgroup tree, and which of its cgroups must have no limit."""

    files: QuotaFiles
    root: str
    unlimited: UnlimitedCgroups


class CfsQuotaUpdater:
    """Which limits must be removed, and which were removed and restored."""

    def __init__(self, state_dir: Path, wake: asyncio.Event, clock: Clock | None = None) -> None:
        """Args: `wake` is set when `lifted` or the problem has changed."""
        self._state_dir, self._wake, self._clock = state_dir, wake, clock or SystemClock()
        self._target: _Target | None = None
        self._rechecks_at: list[float] = []
        self._quotas: LiftedQuotas | None = None
        """Used by the background task only."""
        self.lifted: Mapping[str, Quota] = {}
        """Cgroup to the limit it had before it was removed."""
        self._restored: Mapping[str, Quota] = {}
        """What was restored here and the runtime was not sent: it may have no limit."""
        self._sent = set[str]()
        self._awaited_until: Mapping[str, float] = {}
        """The cgroups to which others may write a limit, and when theirs is restored."""
        self._worker = Worker(
            "cfs-quota",
            self._update,
            expected=_EXPECTED,
            failure="CFS limits could not be updated, it will be retried",
            wake=wake.set,
            clock=self._clock,
        )

    @property
    def problem(self) -> Exception | None:
        """Why the last update failed; it is retried."""
        return self._worker.problem

    def want(
        self, unlimited: UnlimitedCgroups, files: QuotaFiles, root: str, *, full_resync: bool
    ) -> None:
        """Remove the limits of `unlimited` and restore all others; returns at once.

        A limit that may be replaced by a resize is restored after `KUBELET_SECONDS`.

        Args:
            unlimited: the cgroups that must have no limit.
            files: the tree below `root`.
            root: the kubelet's cgroup.
            full_resync: read the limits again although nothing changed on our side.
        """
        before = self._target
        self._target = _Target(files, root, unlimited)
        known = before.unlimited if before else UnlimitedCgroups()
        changed = (unlimited.paths, unlimited.others) != (known.paths, known.others)
        if changed:
            self._recheck_soon()
        if changed or full_resync:
            self._worker.request(skip_backoff=changed)

    def note_resize(self) -> None:
        """Read the limits again, now and some times later: the kubelet may write new ones.

        At a resize it writes those of a pod and of its containers one after the other.
        """
        self._recheck_soon()
        self._worker.request()

    def pause(self) -> None:
        """Remove and restore nothing until something is wanted again."""
        self._target = None
        self._worker.request(skip_backoff=True)

    def note_runtime_update(self, path: str, quota_us: int) -> None:
        """The runtime has written what it has for a container: its limit as well.

        Args:
            path: the container's cgroup.
            quota_us: the limit it was sent; 0 is "no change".
        """
        if quota_us:
            self._sent.add(path)
            self._restored = {one: limit for one, limit in self._restored.items() if one != path}
        if self._target is not None and path in self._target.unlimited.paths:
            self.note_resize()

    def runtime_quota_us(self, path: str) -> int:
        """The limit to send the runtime for a container; 0 is "no change".

        The runtime has the limit that the kubelet sent it last, and writes it at each update. It
        is sent no other one, nor "no limit" for an exclusive container: if the kubelet sends a
        newer one at the same time, that must win. Exception: a limit that was restored here, since
        an update of the runtime did not do so. It has none, from an earlier version of numapin, or
        writes none that it is not sent (CRI-O).

        Args:
            path: the container's cgroup.
        """
        limit = self._restored.get(path)
        return self._found_us(path) or limit.quota_us or 0 if limit is not None else 0

    def _found_us(self, path: str) -> int | None:
        """The limit that the kernel has; None if it has none, or it cannot be read."""
        with suppress(CgroupError):
            found = self._target.files.read_quota(path) if self._target is not None else None
            return found.quota_us if found is not None else None
        return None

    @property
    def runtime_may_lack(self) -> frozenset[str]:
        """The cgroups whose limit the runtime must write, or be sent."""
        return frozenset((*self.lifted, *self._restored))

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What keeps limits from being as they must be."""
        if self.problem is None:
            return ()
        if not isinstance(self.problem, _EXPECTED):
            return (internal_error("updating CFS limits", self.problem),)
        message = f"CFS limits could not be set: {self.problem}"
        return (Obstacle(Reason.CGROUP_WRITE_FAILED, message),)

    async def run(self) -> None:
        """Update limits until cancelled; a failure is retried."""
        await self._worker.run()

    async def _update(self) -> float | None:
        """One update, for the target of its beginning: `pause` may end that one meanwhile."""
        target = self._target
        if target is None:
            self._quotas = None
            return None
        began_seconds = self._clock.monotonic()
        quotas = self._quotas
        if quotas is None or quotas.files is not target.files:
            arguments = (target.files, target.root, self._state_dir)
            quotas = self._quotas = await asyncio.to_thread(LiftedQuotas, *arguments)
        try:
            awaited = self._awaited(target.unlimited, quotas.lifted, began_seconds)
            wanted = (target.unlimited.paths, target.unlimited.others, awaited)
            outcome = await asyncio.to_thread(quotas.update, *wanted)
        finally:
            self._take_over(quotas)
        if outcome.failed:
            raise outcome.failed[0].error
        return self._pause_seconds(began_seconds)

    def _awaited(
        self, unlimited: UnlimitedCgroups, lifted: Collection[str], now_seconds: float
    ) -> tuple[str, ...]:
        """The cgroups whose limit is not restored yet, because others may write a newer one."""
        leaving = set(lifted).difference(unlimited.paths) if unlimited.may_be_resized else set()
        self._awaited_until = {
            path: self._awaited_until.get(path, now_seconds + KUBELET_SECONDS)
            for path in sorted(leaving)
        }
        due_seconds = now_seconds + _EARLY_SECONDS
        return tuple(path for path, until in self._awaited_until.items() if until > due_seconds)

    def _pause_seconds(self, began_seconds: float) -> float | None:
        """How long after a run that began then to read the limits again; None: on request."""
        due_seconds = began_seconds + _EARLY_SECONDS
        self._rechecks_at = [at for at in self._rechecks_at if at > due_seconds]
        awaited = (until for path, until in self._awaited_until.items() if path in self.lifted)
        next_seconds = min((*self._rechecks_at, *awaited), default=None)
        if next_seconds is None:
            return None
        return max(next_seconds - self._clock.monotonic(), 0.0)

    def _recheck_soon(self) -> None:
        now_seconds = self._clock.monotonic()
        self._rechecks_at = [now_seconds + seconds for seconds in RECHECK_SECONDS]

    def _take_over(self, quotas: LiftedQuotas) -> None:
        before, self.lifted = self.lifted, quotas.lifted
        self._sent &= quotas.restored.keys()
        self._restored = {
            path: limit for path, limit in quotas.restored.items() if path not in self._sent
        }
        if self.lifted != before:
            self._wake.set()
