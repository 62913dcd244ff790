"""Read and write objects of the API server, one request each."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from numapin_client.errors import AnswerTooLargeError
from numapin_client.login.credentials import Login
from numapin_client.resources import PODS, Json, Key, Resource
from numapin_client.transport.connection import JSON, MERGE_PATCH, Connection, Request, shown
from numapin_client.transport.throttle import Throttle
from numapin_client.transport.timeouts import DEFAULT_TIMEOUTS, Timeouts

CHUNK_LIMIT: Final = 100
"""Objects in one answer to a list. An answer is parsed in one step of the event loop: 100 pods of
8 kB take some 8 ms, client-go's 500 (`pager.defaultPageSize`) 40 ms."""

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
ANYTHING: Final = "*/*"


@dataclass(frozen=True, slots=True)
class Source:
    """Which objects to list or watch: all of a resource, or those that selectors match.

    Attributes:
        resource: the resource.
        namespace: only this one; empty for all.
        label_selector: as `kubectl -l`.
        field_selector: as `kubectl --field-selector`, such as `metadata.name=node-1`.
        metadata_only: whether lists have nothing else of each object.
    """

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    @property
    def path(self) -> str:
        """The path of the collection."""
        return self.resource.collection_path(self.namespace)

    @property
    def params(self) -> dict[str, str]:
        """The selectors as query parameters."""
        chosen = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: text for name, text in chosen.items() if text}


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a list.

    Attributes:
        items: the objects; the server leaves out their `kind` and `apiVersion`.
        resource_version: the version that the list shows; the same in all its chunks.
        next: the token of the next chunk; empty in the last one.
        size_bytes: the length of the answer.
    """

    items: list[Json]
    resource_version: str
    next: str
    size_bytes: int


class ApiClient:
    """Access to the objects of an API server, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def get(self, resource: Resource, key: Key) -> Json:
        """Read one object.

        Raises:
            NotFoundError: no such object, or no such resource.
            ClientError: as `Connection.ask`; so do all methods below.
        """
        return await self.connection.ask(Request("GET", resource.path(key)))

    async def list_chunk(
        self,
        source: Source,
        next_token: str = "",
        limit: int = CHUNK_LIMIT,
        most_bytes: int | None = None,
    ) -> Chunk:
        """Read one chunk of a list.

        Args:
            source: what to list.
            next_token: `Chunk.next` of the previous chunk; empty for the first.
            limit: the most objects to return; 0 for all.
            most_bytes: the size of the largest answer that is read to its end.

        Raises:
            AnswerTooLargeError: the answer is larger; ask for fewer objects.
            GoneError: the token has expired; list again from the start.
        """
        params = source.params
        if limit:
            params["limit"] = str(limit)
        if next_token:
            params["continue"] = next_token
        accept = METADATA_ONLY if source.metadata_only else JSON
        request = Request("GET", source.path, params, accept=accept)
        async with self.connection.stream(request) as response:
            asked = shown(response)
            body = await _read(response.content.iter_any(), most_bytes, asked)
        answer = self.connection.parse(body, asked)
        metadata = answer.get("metadata") or {}
        return Chunk(
            items=answer.get("items") or [],
            resource_version=metadata.get("resourceVersion", ""),
            next=metadata.get("continue", ""),
            size_bytes=len(body),
        )

    async def list_metadata(self, source: Source, limit: int) -> list[Json]:
        """Read only the metadata of the first objects of a list.

        Source: Kubernetes, "API concepts", "Metadata-only fetches".
        """
        params = source.params | {"limit": str(limit)}
        request = Request("GET", source.path, params, accept=METADATA_ONLY)
        answer = await self.connection.ask(request)
        return [item.get("metadata") or {} for item in answer.get("items") or []]

    async def read_log(self, pod: Key, params: Mapping[str, str], most_bytes: int) -> bytes:
        """Read the log of a container.

        Args:
            pod: the pod.
            params: of the request, such as `container`, `tailLines` and `previous`.
            most_bytes: how much is read; what follows is left out.

        Raises:
            BadRequestError: the container has not started, or there is no previous one.
            NotFoundError: no such pod.
        """
        path = PODS.path(pod, "log")
        limited = {**params, "limitBytes": str(most_bytes)}
        request = Request("GET", path, limited, accept=ANYTHING)
        async with self.connection.stream(request) as response:
            return (await response.read())[:most_bytes]

    async def ask_pod(self, pod: Key, port: int, page: str) -> Json:
        """Read a page in JSON that a pod serves by HTTP, through the API server.

        Raises:
            NotFoundError: no such pod, or it has no such page: that names no object.
            UnavailableError: the API server does not reach it.
        """
        path = PODS.path(Key(f"{pod.name}:{port}", pod.namespace), "proxy")
        return await self.connection.ask(Request("GET", f"{path}/{page}"))

    async def create(
        self, resource: Resource, body: Json, subresource: str = "", *, field_manager: str = ""
    ) -> Json:
        """Create an object; its metadata contains name and namespace.

        With a subresource (`binding`, `eviction`) the request goes to the object of that name, and
        `body` contains its own kind and apiVersion.

        Raises:
            AlreadyExistsError: an object of that name exists.
            InvalidError: it violates the schema or a rule; `causes` name the fields.
        """
        path = resource.collection_path(body["metadata"].get("namespace", ""))
        if subresource:
            path = resource.path(Key.of(body), subresource)
        params = {"fieldManager": field_manager} if field_manager else None
        return await self.connection.ask(Request("POST", path, params, _typed(resource, body)))

    async def update(self, resource: Resource, body: Json, subresource: str = "") -> Json:
        """Replace an object; with `metadata.resourceVersion`, only if it still has that version.

        Raises:
            ConflictError: it was changed since that version.
            NotFoundError: no such object.
        """
        path = resource.path(Key.of(body), subresource)
        return await self.connection.ask(Request("PUT", path, body=_typed(resource, body)))

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        """Change some fields: mappings are merged, lists are replaced, None removes (RFC 7386)."""
        params = {"fieldManager": field_manager} if field_manager else None
        path = resource.path(key, subresource)
        return await self.connection.ask(Request("PATCH", path, params, patch, MERGE_PATCH))

    async def delete(
        self, resource: Resource, key: Key, *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete an object; its dependents are deleted in the background.

        Args:
            resource: the resource.
            key: which object.
            uid: if given, delete only the object with this UID.
            resource_version: if given, delete only this version.

        Raises:
            ConflictError: it has another UID or another version.
            NotFoundError: no such object.
        """
        asked = {"uid": uid, "resourceVersion": resource_version}
        body: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "preconditions": {name: text for name, text in asked.items() if text},
        }
        await self.connection.ask(Request("DELETE", resource.path(key), body=body))


def _typed(resource: Resource, body: Mapping[str, Any]) -> Json:
    """Add `kind` and `apiVersion`, which objects from lists lack."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


@asynccontextmanager
async def connect(
    login: Login,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    *,
    user_agent: str = "numapin",
    throttle: Throttle | None = None,
) -> AsyncIterator[ApiClient]:
    """Open a session to an API server for the duration of the context; connects on first use."""
    opened = Connection(login, timeouts, user_agent=user_agent, throttle=throttle)
    async with opened as connection:
        yield ApiClient(connection)


async def _read(parts: AsyncIterable[bytes], most_bytes: int | None, asked: str) -> bytes:
    read: list[bytes] = []
    size = 0
    async for part in parts:
        read.append(part)
        size += len(part)
        if most_bytes is not None and size > most_bytes:
            raise AnswerTooLargeError(asked, f"the answer has over {most_bytes} bytes")
    return b"".join(read)
