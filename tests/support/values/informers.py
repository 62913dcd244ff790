"""What tests of informers share: a resource, and what an informer has done."""

from typing import TypeVar

from numapin_client.cache.informer import Informer
from numapin_client.client import CHUNK_LIMIT, ApiClient, Chunk, Source
from numapin_client.resources import Json, Key, Resource
from support.fakes.apiserver import FakeApiServer

T = TypeVar("T")

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)


class CountingClient(ApiClient):
    """Counts the lists that were begun, without those that only ask for the version."""

    lists = 0

    async def list_chunk(
        self,
        source: Source,
        next_token: str = "",
        limit: int = CHUNK_LIMIT,
        most_bytes: int | None = None,
    ) -> Chunk:
        self.lists += not next_token and limit != 1
        return await super().list_chunk(source, next_token, limit, most_bytes)


def in_sync(informer: Informer[T]) -> bool:
    """Whether the copy is complete and, as far as the informer can know, up to date."""
    return informer.synced.is_set() and informer.problem is None


def value_of(body: Json) -> str:
    """The value of a ConfigMap that has one."""
    return str(body["data"]["value"])


def truth(server: FakeApiServer) -> dict[Key, str]:
    """The values that the server has, by key."""
    return {Key.of(body): value_of(body) for body in server.objects.values()}


def watches(server: FakeApiServer) -> int:
    """How many watches the server was asked for."""
    return sum(bool(request.query.get("watch")) for request in server.requests)
