"""Edge: tells the runtime the sets of exclusive containers, in the background.

Once the runtime was told a cpuset it writes that one again at each later update. So it is told
what the kernel already has, and told again when that changes.
"""

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_daemon.backoff import Backoff
from numapin_enforcer.runtime.client import (
    ContainerResources,
    ContainerRuntime,
    ContainerState,
    CriError,
    CriNotFoundError,
)

LOG: Final = logging.getLogger(__name__)

NOT_STARTED_SECONDS: Final = 0.25
"""How long to wait for a container that was created and not started: an update that overtakes
its start is acknowledged, and lost."""

NOTHING: Final[Mapping[str, ContainerResources]] = MappingProxyType({})


class RuntimeUpdater:
    """What the runtime should remember, and what it was told."""

    def __init__(self, runtime: ContainerRuntime, wake: asyncio.Event) -> None:
        self._runtime, self._wake = runtime, wake
        self._wanted: Mapping[str, ContainerResources] = {}
        self._changed = asyncio.Event()
        self.told: dict[str, ContainerResources] = {}
        self.tried: dict[str, ContainerResources] = {}
        """What the runtime may remember: as `told`, and what it is being told."""
        self._remembered: dict[str, CpuSet] = {}
        """What it may write at a container's next update, whoever asks for that."""
        self._doubted: set[str] = set()
        """Containers that others may have told it of since we last did."""
        self.problems: dict[str, CriError] = {}
        """Container id to why the runtime could not be told; tried again."""

    @property
    def sent_ids(self) -> frozenset[str]:
        """The containers that this process sent an update of, acknowledged or not."""
        return frozenset(self.tried)

    def sent(self, id_: str) -> ContainerResources | None:
        """What this process sent last of a container, acknowledged or not; None if nothing."""
        return self.tried.get(id_)

    @property
    def problem(self) -> CriError | None:
        """Why the runtime could not be updated, of the first container that it is true of."""
        return next(iter(self.problems.values()), None)

    @property
    def stale_cpus(self) -> dict[str, CpuSet]:
        """Container id to the CPUs that the runtime may give it again, and it is not to have."""
        wanted, remembered = self._wanted, self._remembered
        return {
            id_: remembered[id_]
            for id_ in wanted.keys() & remembered.keys()
            if remembered[id_] - wanted[id_].cpus
        }

    def want(
        self,
        records: Mapping[str, ContainerResources],
        previous: Mapping[str, ContainerResources] = NOTHING,
    ) -> None:
        """Have the runtime remember these, by container id; it forgets the others by itself.

        `previous` is what an earlier process told it of containers that this one did not tell of.
        """
        for id_ in previous.keys() - self.tried.keys():
            self._remembered.setdefault(id_, previous[id_].cpus)
        for known in (self.told, self.tried, self._remembered, self.problems):
            for id_ in known.keys() - records.keys():
                del known[id_]
        self._doubted &= records.keys()
        self._wanted = records
        if any(self.told.get(id_) != record for id_, record in records.items()):
            self._changed.set()

    def note_external_change(self, id_: str, found: CpuSet) -> None:
        """Tell this container again: others have set `found`, maybe by telling the runtime."""
        if self.told.pop(id_, None) or id_ in self.tried:
            self._doubted.add(id_)
            self._remembered[id_] = self._remembered.get(id_, found) | found

    def pause(self) -> None:
        """Tell nothing for now; what the runtime was told stays known."""
        self._wanted = {}
        self.problems.clear()

    async def run(self) -> None:
        """Tell what is wanted, one container at a time, until cancelled."""
        backoff = Backoff(base_seconds=0.5, cap_seconds=30.0)
        while True:
            await self._changed.wait()
            self._changed.clear()
            waiting = [await self._tell(*item) for item in self._pending()]
            if self.problems:
                await asyncio.sleep(backoff.next_seconds())
                self._changed.set()
                continue
            backoff.reset()
            if any(waiting):
                await asyncio.sleep(NOT_STARTED_SECONDS)
                self._changed.set()

    def _pending(self) -> list[tuple[str, ContainerResources]]:
        return [item for item in self._wanted.items() if self.told.get(item[0]) != item[1]]

    async def _tell(self, id_: str, record: ContainerResources) -> bool:
        """Tell one; says whether it is too early for that."""
        try:
            found = await self._runtime.containers(id_)
            if self._wanted.get(id_) != record:
                return False  # meanwhile it is to remember something else
            if any(one.state is ContainerState.CREATED for one in found):
                return True
            if any(one.state is ContainerState.RUNNING for one in found):
                self.tried[id_] = record
                self._doubted.discard(id_)
                self._remembered[id_] = self._remembered.get(id_, record.cpus) | record.cpus
                await self._runtime.update_resources(id_, record)
        except CriNotFoundError:
            self.problems.pop(id_, None)  # it ended meanwhile
        except CriError as error:
            self._failed(id_, record, error)
            return False
        self._succeeded(id_, record)
        return False

    def _succeeded(self, id_: str, record: ContainerResources) -> None:
        """It remembers this and nothing else, or the container ended."""
        if id_ in self._doubted:
            self._changed.set()
            return
        before = self._remembered.pop(id_, record.cpus)
        if id_ in self._wanted:
            self._remembered[id_] = record.cpus
        if self._wanted.get(id_) == record:
            self.told[id_] = record
        if self.problems.pop(id_, None) or before - record.cpus:
            self._wake.set()

    def _failed(self, id_: str, record: ContainerResources, error: CriError) -> None:
        if id_ not in self._wanted:
            return
        if id_ not in self.problems:
            LOG.warning(
                "the runtime could not be told a container's sets, trying again",
                extra={"container": id_, "cpus": record.cpus, "error": error},
            )
        self.problems[id_] = error
        self._wake.set()
