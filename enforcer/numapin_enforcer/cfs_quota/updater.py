"""Edge: keeps CFS limits off owners of CPUs, in the background: a disk may be slow."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from numapin_api.conditions import Obstacle, Reason
from numapin_daemon.backoff import Backoff
from numapin_enforcer.cfs_quota.lifted import LiftedQuotas, QuotaFiles
from numapin_enforcer.cgroups.tree import CgroupError, Quota

LOG: Final = logging.getLogger(__name__)

UNLIMITED_US: Final = -1
"""No limit, as CRI and the kernel write it; in CRI 0 is "no change"."""

SETTLING_SECONDS: Final = (0.2, 1.0, 3.0)
"""How long after a change limits are looked at again: a runtime that is just making a container
sets its limit after its cgroup is there."""


class CfsQuotaUpdater:
    """Whose limits are to be lifted, and which limits are known to be given back."""

    def __init__(self, state_dir: Path, wake: asyncio.Event) -> None:
        self._state_dir, self._wake = state_dir, wake
        self._changed = asyncio.Event()
        self._free: tuple[str, ...] = ()
        self._settling = False
        self._keeper: LiftedQuotas | None = None
        self._files: QuotaFiles | None = None
        self.lifted: Mapping[str, Quota] = {}
        """The limits that cgroups had before theirs were lifted."""
        self._given_back: Mapping[str, Quota] = {}
        self.problem: CgroupError | OSError | None = None
        """Why limits are not as they should be; tried again."""

    def want(
        self, free: tuple[str, ...], files: QuotaFiles, root: str, *, full_resync: bool
    ) -> None:
        """Have the limits of `free` lifted and all others given back; returns at once.

        Args:
            free: the cgroups that are to have no limit.
            files: the tree below `root`.
            root: the kubelet's cgroup.
            full_resync: see to it although nothing changed on our side.
        """
        if self._files is not files:
            self._files, self._keeper = files, LiftedQuotas(files, root, self._state_dir)
        self._settling |= free != self._free
        if full_resync or free != self._free:
            self._free = free
            self._changed.set()

    def pause(self) -> None:
        """Lift and give back nothing until something is wanted again."""
        self._keeper, self._files = None, None
        self._changed.set()

    def runtime_quota_us(self, path: str, told_us: int) -> int:
        """The limit that the runtime is to remember of a container; 0 is "no change".

        With its next update it writes what it remembers. It is told to lift only what is known
        here, for of what it lifts first nobody knows what it was.

        Args:
            path: the container's cgroup.
            told_us: what this process told the runtime of it last; an earlier one may have had it
                lift the limit.
        """
        if path in self._free:
            return UNLIMITED_US if path in self.lifted else told_us
        limit = self.lifted.get(path) or self._given_back.get(path)
        return told_us if told_us > 0 or limit is None else limit.quota_us or 0

    def was_lifted(self, path: str) -> bool:
        """Whether the runtime may have no limit for this container, from an earlier process."""
        return path in self.lifted or path in self._given_back

    def obstacles(self) -> tuple[Obstacle, ...]:
        """What a status says of it."""
        if self.problem is None:
            return ()
        told = f"CFS limits are not as they should be: {self.problem}"
        return (Obstacle(Reason.CGROUP_WRITE_FAILED, told),)

    async def run(self) -> None:
        """Lift and give back, until cancelled; tries again what did not work."""
        backoff = Backoff(base_seconds=0.5, cap_seconds=30.0)
        while True:
            await self._changed.wait()
            self._changed.clear()
            waits = SETTLING_SECONDS if self._settling else ()
            self._settling = False
            await self._see_to_it()
            for seconds in waits:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()
                        break
                await self._see_to_it()
            if self.problem is None:
                backoff.reset()
            else:
                await asyncio.sleep(backoff.next_seconds())
                self._changed.set()

    async def _see_to_it(self) -> None:
        if self._keeper is None:
            self.problem = None
            return
        before = (self.lifted, self.problem)
        try:
            outcome = await asyncio.to_thread(self._keeper.run, self._free)
        except (CgroupError, OSError) as error:
            problem: CgroupError | OSError | None = error
        else:
            problem = outcome.failed[0].error if outcome.failed else None
        if problem is not None and self.problem is None:
            LOG.warning("CFS limits are not as they should be", extra={"error": problem})
        self.lifted, self.problem = self._keeper.remembered, problem
        self._given_back = self._keeper.given_back
        if (self.lifted, self.problem) != before:
            self._wake.set()
