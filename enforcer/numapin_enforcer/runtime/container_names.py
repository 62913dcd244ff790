"""Edge: which container a cgroup belongs to; the runtime says it, in the background."""

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from numapin_daemon.backoff import Backoff
from numapin_enforcer.runtime.types import (
    ContainerRuntime,
    CriError,
    CriUnsupportedError,
    RuntimeContainer,
    RuntimeVersion,
)

LOG: Final = logging.getLogger(__name__)

FEW: Final = 4
"""Up to so many unknown ids are asked for one by one, more by one list of all."""

SOONEST_SECONDS: Final = 0.01
LATEST_SECONDS: Final = 5.0
AGE_SHARE: Final = 20
"""What is not listed yet is asked for again when it has waited this share longer."""


class ContainerNames:
    """Container id to name, as far as it was needed; `known` is replaced, never changed.

    A sandbox's name is empty. What is listed neither as a container nor as a sandbox is still being
    created (CRI-O lists a container some 0.1 s after its cgroup appears, just before it is started,
    and then there is little time), so it is asked for again.
    """

    def __init__(self, runtime: ContainerRuntime, wake: asyncio.Event) -> None:
        self._runtime, self._wake = runtime, wake
        self._wanted: set[str] = set()
        self._unlisted: dict[str, float] = {}
        """Of the wanted, those that the runtime did not list, and when that was first seen."""
        self._asked = asyncio.Event()
        self.known: dict[str, str] = {}
        self.problem: CriError | None = None
        """Why the runtime does not say what it was asked; None while it does."""
        self.runtime_version: RuntimeVersion | None = None

    def need(self, ids: Iterable[str]) -> frozenset[str]:
        """Ask for the names of these containers; returns those not known yet."""
        self._wanted = set(ids) - self.known.keys()
        self._unlisted = {id_: at for id_, at in self._unlisted.items() if id_ in self._wanted}
        if self._wanted - self._unlisted.keys():
            self._asked.set()
        return frozenset(self._wanted)

    @property
    def unlisted(self) -> frozenset[str]:
        """The containers asked for that the runtime did not list when it last answered."""
        return frozenset(self._unlisted)

    def learn(self, containers: Iterable[RuntimeContainer]) -> None:
        """Take in what an event said; the loop is woken when it waits for that."""
        told = {one.id: one.name for one in containers}
        self.known = self.known | told
        if not self._wanted.isdisjoint(told):
            self._wanted -= told.keys()
            self._wake.set()

    def forget_except(self, ids: Collection[str]) -> None:
        """Drop what has no cgroup; one that is yet to come is asked for when it does."""
        if not self.known.keys() <= set(ids):
            self.known = {id_: name for id_, name in self.known.items() if id_ in ids}

    async def run(self) -> None:
        """Answer what was asked for, until cancelled; a silent runtime is asked again."""
        backoff = Backoff(base_seconds=0.1, cap_seconds=5.0)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_seconds()):
                    await self._asked.wait()
            self._asked.clear()
            try:
                await self._resolve(frozenset(self._wanted))
            except CriError as error:
                self._note(error)
                await asyncio.sleep(backoff.next_seconds())
                self._asked.set()
            else:
                backoff.reset()

    def _pause_seconds(self) -> float | None:
        """How long until the runtime may have listed what it had not; None if there is nothing."""
        if not self._unlisted:
            return None
        waited_seconds = time.monotonic() - max(self._unlisted.values())
        return min(max(waited_seconds / AGE_SHARE, SOONEST_SECONDS), LATEST_SECONDS)

    async def listen(self) -> None:
        """Follow the runtime's events as long as it tells any; they spare us the question."""
        backoff = Backoff(base_seconds=0.5, cap_seconds=10.0)
        while True:
            try:
                async for containers in self._runtime.events():
                    backoff.reset()
                    self.learn(containers)
            except CriUnsupportedError:
                LOG.info("the runtime tells no events; its list is asked instead")
                return
            except CriError as error:
                self._note(error)
            self._wake.set()
            await asyncio.sleep(backoff.next_seconds())

    async def probe(self, every_seconds: float) -> None:
        """See now and then who answers, and that somebody does."""
        while True:
            try:
                version = await self._runtime.version()
            except CriError as error:
                self._note(error)
            else:
                self._note(None)
                if version != self.runtime_version:
                    self.runtime_version = version
                    self._wake.set()
            await asyncio.sleep(every_seconds)

    async def _resolve(self, ids: frozenset[str]) -> None:
        each = ids if len(ids) <= FEW else ("",)
        found: dict[str, str] = {}
        for id_ in each:
            found |= {one.id: one.name for one in await self._runtime.containers(id_)}
        for id_ in each if ids - found.keys() else ():
            found |= dict.fromkeys(await self._runtime.sandboxes(id_), "")
        now = time.monotonic()
        self._unlisted = {id_: self._unlisted.get(id_, now) for id_ in ids - found.keys()}
        self._wanted -= found.keys()
        if ids:
            self._note(None)
        if not ids.isdisjoint(found):
            self.known = self.known | found
            self._wake.set()

    def _note(self, error: CriError | None) -> None:
        changed = str(error) != str(self.problem)
        self.problem = error
        if changed:
            if error is not None:
                LOG.warning("the container runtime was not heard", extra={"error": error})
            self._wake.set()
