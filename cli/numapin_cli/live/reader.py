"""Reads the objects of a cluster as manifests, each kind when a command needs it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from numapin_cli.inputs.manifests import Manifest
from numapin_cli.live.server import is_unknown_resource, said
from numapin_client.cache.chunked_list import ChunkedList
from numapin_client.client import ApiClient, Source
from numapin_client.errors import ClientError, ForbiddenError, GoneError, NotFoundError
from numapin_client.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Json,
    Key,
    Resource,
)
from numapin_operator.observe.pods.claims import ClaimView
from numapin_operator.observe.pods.parser import parse_stored_pod

T = TypeVar("T")

CHUNK: Final = 500
AT_ONCE: Final = 8
"""Requests at the same time; more would crowd others out of the API server."""

NAMES_READ: Final = 5000
"""Names that are read to find one like a name that does not exist."""

ALIVE: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Selects pods that have not ended; the operator does not watch others."""

_NO_CPUS: Final[Json] = {"allocation": {"devices": {"results": []}}}


def _unseen(_resource: str, _count: int) -> None:
    """Show nobody how much has been read."""


class Reader:
    """Reads objects.

    Every method raises `ClientError` if the API server does not answer or refuses.
    """

    def __init__(self, client: ApiClient, seen: Callable[[str, int], None] = _unseen) -> None:
        """Args: `seen` is called with the name of a resource and how many were read so far."""
        self.client, self._seen = client, seen
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def all(
        self, resource: Resource, keep: Callable[[Json], Json] = dict, **selectors: str
    ) -> list[Manifest]:
        """Every object of a resource, or those that selectors of `Source` match.

        Args:
            resource: the resource.
            keep: what to keep of each object, so that the rest takes no memory.
            selectors: fields of `Source`.
        """
        return await self.each(resource, lambda one: manifest(resource, keep(one)), **selectors)

    async def each(
        self, resource: Resource, made: Callable[[Json], T], **selectors: str
    ) -> list[T]:
        """What is made of each object of a resource, in small chunks: nothing else is kept."""
        return await self._listed(Source(resource, metadata_only=False, **selectors), made)

    async def one(self, resource: Resource, key: Key) -> Manifest | None:
        """One object; None if it does not exist."""
        try:
            async with self._slots:
                return manifest(resource, await self.client.get(resource, key))
        except NotFoundError as error:
            if is_unknown_resource(error):
                raise
            return None

    async def pods_on(self, nodes: Iterable[str]) -> list[Manifest]:
        """The pods that are bound to some nodes, and have not ended."""
        lists = await together(
            self.all(PODS, field_selector=f"spec.nodeName={node},{ALIVE}") for node in nodes
        )
        return [pod for pods in lists for pod in pods]

    async def named_nodes(self, names: Iterable[str]) -> list[Manifest]:
        """The Nodes of some names, as far as they exist. The right to list Nodes is enough."""
        lists = await together(
            self.all(NODES, field_selector=f"metadata.name={name}") for name in names
        )
        return [node for nodes in lists for node in nodes]

    async def names(self, resource: Resource, namespace: str = "") -> list[Key]:
        """The names of some objects of a resource."""
        source = Source(resource, namespace)
        listed = await self.client.list_metadata(source, NAMES_READ)
        return [Key(one["name"], one.get("namespace", "")) for one in listed]

    async def labels(self, resource: Resource) -> dict[str, Mapping[str, str]]:
        """The labels of every object of a resource that has no namespaces, by its name."""
        return dict(
            await self.metadata(resource, lambda one: (one["name"], one.get("labels") or {}))
        )

    async def metadata(self, resource: Resource, made: Callable[[Json], T]) -> list[T]:
        """What is made of the metadata of each object of a resource; nothing else is read."""
        source = Source(resource, metadata_only=True)
        return await self._listed(source, lambda one: made(one["metadata"]))

    async def names_if_allowed(self, resource: Resource, namespace: str = "") -> list[Key]:
        """The same; none if they may not be listed."""
        try:
            return await self.names(resource, namespace)
        except ForbiddenError:
            return []

    async def one_if_allowed(self, resource: Resource, key: Key) -> Manifest | None:
        """One object; None if it does not exist or may not be read."""
        try:
            return await self.one(resource, key)
        except ForbiddenError:
            return None

    async def why_forbidden(self, resource: Resource) -> str:
        """Why objects of a resource may not be listed; empty if they may."""
        try:
            await self.client.list_chunk(Source(resource), limit=1)
        except ForbiddenError as error:
            return said(error)
        return ""

    async def claims_of(self, pods: Sequence[Manifest]) -> list[Manifest]:
        """The ResourceClaims of pods; one that does not exist is read as one without CPUs."""
        views = [parse_stored_pod(pod.content) for pod in pods]
        keys = {
            Key(ref.claim, view.namespace)
            for view in views
            for container in view.containers
            for ref in container.claims
        }
        return await together(self._claim(key) for key in sorted(keys))

    async def slices_of(self, nodes: Iterable[str], claims: Iterable[Manifest]) -> list[Manifest]:
        """The ResourceSlices of the claims' drivers on nodes, and those of no node.

        None of a driver whose slices may not be listed.
        """
        views = (ClaimView.decode(claim.content) for claim in claims)
        drivers = {device.driver for view in views if view for _, device in view.devices}
        lists = await together(
            self._slices(f"spec.nodeName={node},spec.driver={driver}")
            for driver in sorted(drivers)
            for node in sorted({*nodes, ""})
        )
        return [one for listed in lists for one in listed]

    async def _slices(self, selector: str) -> list[Manifest]:
        try:
            return await self.all(RESOURCE_SLICES, field_selector=selector)
        except ForbiddenError:
            return []

    async def _claim(self, key: Key) -> Manifest:
        found = await self.one(RESOURCE_CLAIMS, key)
        metadata = {"name": key.name, "namespace": key.namespace}
        return found or manifest(RESOURCE_CLAIMS, {"metadata": metadata, "status": _NO_CPUS})

    async def _listed(self, source: Source, made: Callable[[Json], T]) -> list[T]:
        async with self._slots:
            try:
                return await self._read_chunks(source, made)
            except GoneError:  # the list expired between two chunks
                return await self._read_chunks(source, made)

    async def _read_chunks(self, source: Source, made: Callable[[Json], T]) -> list[T]:
        chunks, found = ChunkedList(self.client, source, CHUNK), list[T]()
        while not chunks.ended:
            found += map(made, (await chunks.read()).items)
            self._seen(source.resource.plural, len(found))
        return found


def manifest(resource: Resource, content: dict[str, Any]) -> Manifest:
    """An object of the API server; lists leave its kind and apiVersion out."""
    typed = {"apiVersion": resource.api_version, "kind": resource.kind, **content}
    return Manifest("the API server", resource.kind, typed, stored=True)


async def together(asked: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for several reads at the same time; returns the answers in their order.

    Raises:
        ClientError: that of the first read that failed; the others are cancelled.
    """
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(_awaited(one), name="read") for one in asked]
    except* ClientError as failed:
        raise _first(failed) from None
    return [task.result() for task in tasks]


def _first(failed: BaseExceptionGroup[ClientError]) -> ClientError:
    inner = failed.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


async def _awaited(one: Awaitable[T]) -> T:
    return await one
