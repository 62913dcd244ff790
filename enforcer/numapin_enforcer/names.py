"""Edge: which container a cgroup belongs to; the runtime says it, in the background."""

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Final

from numapin_client.backoff import Backoff
from numapin_enforcer.cri import (
    ContainerRuntime,
    CriError,
    CriUnsupportedError,
    RuntimeContainer,
    RuntimeVersion,
)

LOG: Final = logging.getLogger(__name__)

FEW: Final = 4
"""Up to so many unknown ids are asked for one by one, more by one list of all."""


class ContainerNames:
    """Container id to name, as far as it was needed; `known` is replaced, never changed.

    A container is listed before its cgroup appears; an id that is not listed is a sandbox's, and
    its name is empty.
    """

    def __init__(self, runtime: ContainerRuntime, wake: asyncio.Event) -> None:
        self._runtime, self._wake = runtime, wake
        self._wanted: set[str] = set()
        self._asked = asyncio.Event()
        self.known: dict[str, str] = {}
        self.problem: CriError | None = None
        """Why the runtime does not say what it was asked; None while it does."""
        self.version: RuntimeVersion | None = None

    def need(self, ids: Iterable[str]) -> frozenset[str]:
        """Ask for the names of these containers; returns those not known yet."""
        self._wanted = set(ids) - self.known.keys()
        if self._wanted:
            self._asked.set()
        return frozenset(self._wanted)

    def learn(self, containers: Iterable[RuntimeContainer]) -> None:
        """Take in what an event said; the loop is woken when it waits for that."""
        told = {one.id: one.name for one in containers}
        self.known = self.known | told
        if not self._wanted.isdisjoint(told):
            self._wanted -= told.keys()
            self._wake.set()

    def forget_all_but(self, ids: Collection[str]) -> None:
        """Drop what has no cgroup; one that is yet to come is asked for when it does."""
        if not self.known.keys() <= set(ids):
            self.known = {id_: name for id_, name in self.known.items() if id_ in ids}

    async def run(self) -> None:
        """Answer what was asked for, until cancelled; a silent runtime is asked again."""
        backoff = Backoff(base_seconds=0.1, cap_seconds=5.0)
        while True:
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

    async def listen(self) -> None:
        """Follow the runtime's events as long as it tells any; they spare us the question."""
        backoff = Backoff(base_seconds=0.5, cap_seconds=10.0)
        while True:
            try:
                async for event in self._runtime.events():
                    backoff.reset()
                    self.learn(event.containers)
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
                if version != self.version:
                    self.version = version
                    self._wake.set()
            await asyncio.sleep(every_seconds)

    async def _resolve(self, ids: frozenset[str]) -> None:
        if len(ids) > FEW:
            found = await self._runtime.containers()
        else:
            found = tuple([one for id_ in ids for one in await self._runtime.containers(id_)])
        self.known = self.known | dict.fromkeys(ids, "") | {one.id: one.name for one in found}
        self._wanted -= ids
        self._note(None)
        if ids:
            self._wake.set()

    def _note(self, error: CriError | None) -> None:
        changed = str(error) != str(self.problem)
        self.problem = error
        if changed:
            if error is not None:
                LOG.warning("the container runtime was not heard", extra={"error": error})
            self._wake.set()
