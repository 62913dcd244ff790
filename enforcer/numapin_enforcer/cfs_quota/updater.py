"""Removes CFS limits of exclusive containers in the background: a disk may be slow."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from numapin_api.conditions.reasons import Obstacle, Reason, internal_error
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.cfs_quota.lifted import LiftedQuotas, QuotaFiles
from numapin_enforcer.cfs_quota.plan import NO_OTHERS
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.write import Quota

UNLIMITED_US: Final = -1
"""No limit, as CRI and the kernel write it; in CRI 0 is "no change"."""

RECHECK_SECONDS: Final = (0.2, 1.0, 3.0)
"""Waits after which limits are read again when the set of containers has changed, or one was
resized: a runtime that is creating a container sets its limit after the cgroup exists."""

_EXPECTED: Final = (CgroupError, OSError)


@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """A kubelet's cgroup tree, and which of its cgroups must have no limit."""

    files: QuotaFiles
    root: str
    unlimited: tuple[str, ...]
    others: Mapping[str, bool]


class CfsQuotaUpdater:
    """Which limits must be removed, and which were removed and restored."""

    def __init__(self, state_dir: Path, wake: asyncio.Event, clock: Clock | None = None) -> None:
        """Args: `wake` is set when `lifted` or the problem has changed."""
        self._state_dir, self._wake = state_dir, wake
        self._target: _Target | None = None
        self._rechecks_seconds: list[float] = []
        self._quotas: LiftedQuotas | None = None
        """Used by the background task only."""
        self.lifted: Mapping[str, Quota] = {}
        """Cgroup to the limit it had before it was removed."""
        self._restored: Mapping[str, Quota] = {}
        self._worker = Worker(
            "cfs-quota",
            self._update,
            expected=_EXPECTED,
            failure="CFS limits could not be updated, it will be retried",
            wake=wake.set,
            clock=clock or SystemClock(),
        )

    @property
    def problem(self) -> Exception | None:
        """Why the last update failed; it is retried."""
        return self._worker.problem

    def want(
        self,
        unlimited: tuple[str, ...],
        files: QuotaFiles,
        root: str,
        *,
        others: Mapping[str, bool] = NO_OTHERS,
        full_resync: bool,
    ) -> None:
        """Remove the limits of `unlimited` and restore all others; returns at once.

        Args:
            unlimited: the cgroups that must have no limit.
            files: the tree below `root`.
            root: the kubelet's cgroup.
            others: the containers beside exclusive ones; see `plan_quotas`.
            full_resync: read the limits again although nothing changed on our side.
        """
        before, self._target = self._target, _Target(files, root, unlimited, others)
        known = (before.unlimited, before.others) if before else ((), {})
        changed = (unlimited, others) != known
        if changed:
            self._rechecks_seconds = list(RECHECK_SECONDS)
        if changed or full_resync:
            self._worker.request(skip_backoff=changed)

    def note_resize(self) -> None:
        """Read the limits again, now and some times later: the kubelet may write new ones.

        At a resize it writes those of a pod and of its containers one after the other.
        """
        self._rechecks_seconds = list(RECHECK_SECONDS)
        self._worker.request()

    def pause(self) -> None:
        """Remove and restore nothing until something is wanted again."""
        self._target = None
        self._worker.request(skip_backoff=True)

    def runtime_quota_us(self, path: str, sent_us: int) -> int:
        """The limit that the runtime must have for a container; 0 is "no change".

        The runtime writes the limit it was sent last at each later update. "No limit" is sent only
        once the limit is recorded here: what the runtime removes first cannot be restored. For a
        limit that was restored, the kernel's counts: after a resize it is the kubelet's new one.

        Args:
            path: the container's cgroup.
            sent_us: what this process sent the runtime last; an earlier process may have sent
                "no limit".
        """
        if self._target is not None and path in self._target.unlimited:
            return UNLIMITED_US if path in self.lifted else sent_us
        limit = self.lifted.get(path) or self._restored.get(path)
        if limit is None:
            return sent_us
        return self._found_us(path) or limit.quota_us or 0

    def _found_us(self, path: str) -> int | None:
        """The limit that the kernel has; None if it has none, or it cannot be read."""
        with suppress(CgroupError):
            found = self._target.files.read_quota(path) if self._target is not None else None
            return found.quota_us if found is not None else None
        return None

    @property
    def runtime_may_lack(self) -> frozenset[str]:
        """The cgroups for which the runtime may have no limit, from an earlier process."""
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
        quotas = self._quotas
        if quotas is None or quotas.files is not target.files:
            arguments = (target.files, target.root, self._state_dir)
            quotas = self._quotas = await asyncio.to_thread(LiftedQuotas, *arguments)
        try:
            outcome = await asyncio.to_thread(quotas.update, target.unlimited, target.others)
        finally:
            self._take_over(quotas)
        if outcome.failed:
            raise outcome.failed[0].error
        return self._rechecks_seconds.pop(0) if self._rechecks_seconds else None

    def _take_over(self, quotas: LiftedQuotas) -> None:
        before, self.lifted, self._restored = self.lifted, quotas.lifted, quotas.restored
        if self.lifted != before:
            self._wake.set()
