"""A container runtime whose answers a test decides."""

import asyncio
from collections.abc import AsyncGenerator, Callable

from numapin_enforcer.runtime.interface import (
    ContainerResources,
    ContainerState,
    CriError,
    CriNotFoundError,
    CriUnsupportedError,
    RuntimeContainer,
    RuntimeVersion,
)


class FakeRuntime:
    """Knows `known` and the sandboxes `sandbox_ids`; fails with `failure` while that is set.

    `updates` lists the resources that it was sent and accepted.
    """

    def __init__(self) -> None:
        self.known: dict[str, RuntimeContainer] = {}
        self.sandbox_ids: set[str] = set()
        self.pod_names: dict[str, str] = {}
        """Namespace and name of each pod with a sandbox, by UID."""
        self.updates: list[tuple[str, ContainerResources]] = []
        self.asked: list[str] = []
        self.asked_pods: list[str] = []
        self.failure: Exception | None = None
        self.on_update: Callable[[str, ContainerResources], object] = lambda *_: None
        """Writes the cgroup, as a real one does before it answers."""
        self.refuse: dict[str, CriError] = {}
        """Container id to why its updates fail."""
        self.may_list = asyncio.Event()
        """Cleared while lists must wait for their answer."""
        self.may_list.set()
        self.may_update = asyncio.Event()
        """Cleared while updates must wait for their answer."""
        self.may_update.set()
        self.queue: asyncio.Queue[tuple[RuntimeContainer, ...] | Exception | None] | None = None
        """Events, errors, and None for the end of the stream; no stream without a queue."""
        self.streams_opened = 0

    def has(self, id_: str, name: str, state: ContainerState = ContainerState.RUNNING) -> None:
        self.known[id_] = RuntimeContainer(id_, name, state)

    async def version(self) -> RuntimeVersion:
        self._fail()
        return RuntimeVersion("fake", "v1")

    async def containers(self, container_id: str = "") -> tuple[RuntimeContainer, ...]:
        self.asked.append(container_id)
        await self.may_list.wait()
        self._fail()
        found = self.known.values()
        return tuple(one for one in found if container_id in {"", one.id})

    async def sandboxes(self, sandbox_id: str = "") -> frozenset[str]:
        self._fail()
        return frozenset(one for one in self.sandbox_ids if sandbox_id in {"", one})

    async def pods(self, uid: str = "") -> dict[str, str]:
        self.asked_pods.append(uid)
        self._fail()
        return {one: name for one, name in self.pod_names.items() if uid in {"", one}}

    async def update_resources(self, container_id: str, resources: ContainerResources) -> None:
        await self.may_update.wait()
        self._fail()
        if container_id in self.refuse:
            raise self.refuse[container_id]
        if container_id not in self.known:
            raise CriNotFoundError("no such container")
        self.on_update(container_id, resources)
        self.updates.append((container_id, resources))

    async def events(self) -> AsyncGenerator[tuple[RuntimeContainer, ...]]:
        self.streams_opened += 1
        if self.queue is None:
            raise CriUnsupportedError("method GetContainerEvents not implemented")
        while (event := await self.queue.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure
