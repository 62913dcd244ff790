"""Read and write objects of the API server, one request each; errors are types."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from numapin_client.connection import (
    DEFAULT_TIMEOUTS,
    MERGE_PATCH,
    Connection,
    Request,
    Timeouts,
)
from numapin_client.login.credentials import Login
from numapin_client.resources import Json, Key, Resource

CHUNK_LIMIT: Final = 500
"""Objects in one answer to a list. Source: client-go `pager.defaultPageSize`."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which objects to list or watch: all of a resource, or those that a selector picks.

    Attributes:
        resource: the resource.
        namespace: only this one; empty for all.
        label_selector: as `kubectl -l`.
        field_selector: as `kubectl --field-selector`, such as `metadata.name=node-1`.
    """

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def path(self) -> str:
        """Where the API server keeps them."""
        return self.resource.collection_path(self.namespace)

    @property
    def params(self) -> dict[str, str]:
        """The selectors, as a query."""
        chosen = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: text for name, text in chosen.items() if text}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a list.

    Attributes:
        items: the objects, without `kind` and `apiVersion`, as the server leaves these out.
        resource_version: the moment the list shows; the same in all its chunks.
        next: token of the chunk that follows; empty in the last one.
    """

    items: list[Json]
    resource_version: str
    next: str


class ApiClient:
    """The API server's objects, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def get(self, resource: Resource, key: Key) -> Json:
        """Read one object.

        Raises:
            NotFoundError: there is none, or no such resource.
            ClientError: as `Connection.ask`; so do all methods below.
        """
        return await self.connection.ask(Request("GET", resource.path(key)))

    async def list_chunk(
        self, source: Source, next_token: str = "", limit: int = CHUNK_LIMIT
    ) -> Chunk:
        """Read one chunk of a list.

        Args:
            source: what to list.
            next_token: `Chunk.next` of the chunk before; empty for the first.
            limit: objects wanted; 0 for all at once.

        Raises:
            GoneError: the token has expired; start anew.
        """
        params = source.params
        if limit:
            params["limit"] = str(limit)
        if next_token:
            params["continue"] = next_token
        answer = await self.connection.ask(Request("GET", source.path, params))
        metadata = answer.get("metadata") or {}
        return Chunk(
            items=answer.get("items") or [],
            resource_version=metadata.get("resourceVersion", ""),
            next=metadata.get("continue", ""),
        )

    async def create(self, resource: Resource, body: Json, subresource: str = "") -> Json:
        """Create an object; its metadata says name and namespace.

        With a subresource (`binding`, `eviction`) it is done to the object of that name; `body`
        then says its own kind and apiVersion.

        Raises:
            AlreadyExistsError: there is one of that name.
            InvalidError: it breaks the schema or a rule; `causes` name the fields.
        """
        path = resource.collection_path(body["metadata"].get("namespace", ""))
        if subresource:
            path = resource.path(Key.of(body), subresource)
        return await self.connection.ask(Request("POST", path, body=_typed(resource, body)))

    async def update(self, resource: Resource, body: Json, subresource: str = "") -> Json:
        """Replace an object; with `metadata.resourceVersion` only if it is still that version.

        Raises:
            ConflictError: somebody else wrote since.
            NotFoundError: there is none.
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
        """Change some fields: mappings are merged, lists replaced, None removes (RFC 7386)."""
        params = {"fieldManager": field_manager} if field_manager else None
        path = resource.path(key, subresource)
        return await self.connection.ask(Request("PATCH", path, params, patch, MERGE_PATCH))

    async def delete(
        self, resource: Resource, key: Key, *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete an object; what depends on it is collected later.

        Args:
            resource: the resource.
            key: which object.
            uid: only if it is still this one, and not another of the same name.
            resource_version: only if it is still this version.

        Raises:
            ConflictError: it is another one, or another version.
            NotFoundError: there is none.
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
    login: Login, timeouts: Timeouts = DEFAULT_TIMEOUTS, *, user_agent: str = "numapin"
) -> AsyncIterator[ApiClient]:
    """Open a session to an API server for as long as the context lasts; connects on first use."""
    async with Connection(login, timeouts, user_agent=user_agent) as connection:
        yield ApiClient(connection)
