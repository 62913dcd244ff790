"""A container runtime that answers what a test says; the real client passes the same calls."""

import asyncio
from collections.abc import AsyncIterator

from numapin_enforcer.runtime.client import (
    ContainerResources,
    ContainerState,
    CriError,
    CriNotFoundError,
    CriUnsupportedError,
    RuntimeContainer,
    RuntimeEvent,
    RuntimeVersion,
)


class FakeRuntime:
    """Knows `known` and the sandboxes `pods`; fails with `failure` while that is set.

    It remembers what it was told.
    """

    def __init__(self) -> None:
        self.known: dict[str, RuntimeContainer] = {}
        self.pods: set[str] = set()
        self.told: list[tuple[str, ContainerResources]] = []
        self.asked: list[str] = []
        self.failure: CriError | None = None
        self.answers = asyncio.Event()
        """Cleared while questions are to wait for their answer."""
        self.answers.set()
        self.records = asyncio.Event()
        """Cleared while records are to wait for their acknowledgement."""
        self.records.set()
        self.queue: asyncio.Queue[RuntimeEvent | CriError] | None = None

    def has(self, id_: str, name: str, state: ContainerState = ContainerState.RUNNING) -> None:
        self.known[id_] = RuntimeContainer(id_, name, state)

    async def version(self) -> RuntimeVersion:
        self._fail()
        return RuntimeVersion("fake", "v1")

    async def containers(self, container_id: str = "") -> tuple[RuntimeContainer, ...]:
        self.asked.append(container_id)
        await self.answers.wait()
        self._fail()
        found = self.known.values()
        return tuple(one for one in found if container_id in {"", one.id})

    async def sandboxes(self, sandbox_id: str = "") -> frozenset[str]:
        self._fail()
        return frozenset(one for one in self.pods if sandbox_id in {"", one})

    async def update_resources(self, container_id: str, record: ContainerResources) -> None:
        await self.records.wait()
        self._fail()
        if container_id not in self.known:
            raise CriNotFoundError("no such container")
        self.told.append((container_id, record))

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        if self.queue is None:
            raise CriUnsupportedError("method GetContainerEvents not implemented")
        while True:
            event = await self.queue.get()
            if isinstance(event, CriError):
                raise event
            yield event

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure
