"""Containers that the runtime runs outside of the kubelet's cgroups, looked for once a minute."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final

from numapin_api.quantity import plural
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.worker import Worker
from numapin_enforcer.cgroups.tree import OutsideCgroup
from numapin_enforcer.runtime.interface import ContainerRuntime, ContainerState, CriError
from numapin_enforcer.runtime.unlisted import SHORT_ID

LIST_SECONDS: Final = 60.0
"""How often all containers are listed: a long list costs the loop some milliseconds."""

LEAST_SECONDS: Final = 1.0
"""How soon at least they may be listed again, where a newer list is needed."""

PodContainer = tuple[str, str]
"""The UID of a pod and the name of a container; the UID is empty if it is not the kubelet's."""


class OutsideContainers:
    """Which running containers have a cgroup elsewhere, and which have none that is seen."""

    def __init__(
        self, runtime: ContainerRuntime, wake: asyncio.Event, clock: Clock | None = None
    ) -> None:
        """Args: `wake` is set after the first list, and after one that was asked for."""
        self._runtime, self._wake = runtime, wake
        self._clock = clock or SystemClock()
        self._wanted_since = self.listed_at = 0.0
        """When the runtime was asked for the newest list, on a clock that only goes forward."""
        self._listed: Mapping[str, PodContainer] | None = None
        """The running containers of the newest list, by id; None before the first."""
        self.running: Mapping[str, str] = {}
        """Ids of the containers that run, by the newest list, with namespace, pod and name."""
        self._judged: Mapping[str, PodContainer] | None = None
        """The list that `_missing` is from."""
        self._missing: frozenset[str] = frozenset()
        self._unseen: frozenset[str] = frozenset()
        self._needed = False
        self.found: tuple[OutsideCgroup, ...] = ()
        """The cgroups outside of the kubelet's that have a container, as found last."""
        self.strays: frozenset[PodContainer] = frozenset()
        """The kubelet's containers among them, and those without a known cgroup."""
        self._worker = Worker(
            "outside-containers",
            self._list,
            expected=(CriError,),
            failure="",
            clock=self._clock,
        )

    @property
    def note(self) -> str:
        """Which containers may use any CPU for all that is known; empty if there are none."""
        if not self._needed or not self._unseen:
            return ""
        shown = ", ".join(id_[:SHORT_ID] for id_ in sorted(self._unseen)[:3])
        return (
            f"the runtime lists {plural(len(self._unseen), 'container')} without a known cgroup "
            f"({shown}), which may use exclusive CPUs"
        )

    async def run(self) -> None:
        """List containers while that is needed, until cancelled."""
        await self._worker.run()

    def need_since(self, since: float | None) -> None:
        """Have a list from `since` or later, on the clock of `listed_at`; None if any will do.

        The next list comes early for that, but not sooner than `LEAST_SECONDS` after the last one.
        """
        if since is None or since <= max(self.listed_at, self._wanted_since):
            return
        if self._needed and self._clock.monotonic() - self.listed_at >= LEAST_SECONDS:
            self._wanted_since = self._clock.monotonic()
            self._worker.request()

    def locate(
        self,
        inside: Collection[str],
        find: Callable[[Collection[str]], Mapping[str, OutsideCgroup]],
        *,
        needed: bool,
        resynced: bool,
    ) -> None:
        """Search for the listed containers that are not inside.

        A container may end, or start, between the list and this call. Only one that is missing
        after two lists counts as having no cgroup.

        Args:
            inside: ids of the containers in the kubelet's cgroups.
            find: finds the cgroups of containers elsewhere.
            needed: whether any container has exclusive CPUs.
            resynced: whether the kubelet's cgroups were all read.
        """
        if needed and not self._needed:
            self._worker.request()
        self._needed = needed
        is_new = self._listed is not self._judged
        if not needed or self._listed is None or not (resynced or is_new):
            if not needed:
                self.found, self.strays = (), frozenset()
            return
        candidates = self._listed.keys() - set(inside)
        found = find(candidates) if candidates else {}
        self.found = tuple(found[id_] for id_ in sorted(found))
        if is_new:
            missing = frozenset(candidates.difference(found))
            self._unseen, self._missing = missing & self._missing, missing
            self._judged = self._listed
        strays = (self._listed[id_] for id_ in found.keys() | self._unseen)
        self.strays = frozenset(one for one in strays if one[0])

    async def _list(self) -> float | None:
        if not self._needed:
            return None
        is_awaited = self._listed is None or self._wanted_since > self.listed_at
        began = self._clock.monotonic()
        containers = await self._runtime.containers()
        running = [one for one in containers if one.state is ContainerState.RUNNING]
        self._listed = {one.id: (one.pod_uid, one.name) for one in running}
        self.running = {one.id: f"{one.pod or 'no pod'}/{one.name}" for one in running}
        self.listed_at = began
        if is_awaited:
            self._wake.set()
        return LIST_SECONDS
