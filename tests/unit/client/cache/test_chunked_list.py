"""A list of large objects is read in answers that are small, and completely."""

import json
from typing import Any

import pytest

from numapin_client.cache.chunked_list import MOST_BYTES, ChunkedList
from numapin_client.cache.informer import Informer
from numapin_client.client import ApiClient, Source
from numapin_client.resources import Json, Key
from support.fakes.apiserver import FakeApiServer
from support.real.waiting import running
from support.values.informers import CONFIG_MAPS

ALL = Source(CONFIG_MAPS)
LARGE = 300_000
"""Bytes of an object: three fit into one answer."""


def put(server: FakeApiServer, name: str, size: int) -> None:
    body = {"metadata": {"name": name, "namespace": "ns"}, "data": {"value": "x" * size}}
    server.put(CONFIG_MAPS, body)


def mixed(server: FakeApiServer) -> None:
    """Small ones, then large ones, then small ones."""
    for number in range(90):
        put(server, f"m{number:02}", LARGE if 20 <= number < 40 else 10)


@pytest.fixture
def sizes(client: ApiClient) -> list[int]:
    """The sizes of all answers that are parsed."""
    found: list[int] = []

    def load(body: bytes) -> Any:
        found.append(len(body))
        return json.loads(body)

    client.connection.load_json = load
    return found


async def listed(client: ApiClient, limit: int = 100) -> list[list[Json]]:
    chunks, read = ChunkedList(client, ALL, limit), []
    while not chunks.ended:
        read.append((await chunks.read()).items)
    return read


async def test_every_object_is_listed_once_and_no_large_answer_is_parsed(
    server: FakeApiServer, client: ApiClient, sizes: list[int]
) -> None:
    mixed(server)
    names = [one["metadata"]["name"] for chunk in await listed(client) for one in chunk]
    assert names == [f"m{number:02}" for number in range(90)]
    assert max(sizes) <= MOST_BYTES


async def test_the_chunks_are_large_again_after_large_objects(
    server: FakeApiServer, client: ApiClient
) -> None:
    mixed(server)
    counts = [len(chunk) for chunk in await listed(client, limit=30)]
    smallest = min(counts)
    assert smallest <= 3
    assert max(counts[counts.index(smallest) :]) >= 4 * smallest


async def test_few_answers_are_refused_where_all_objects_are_alike(
    server: FakeApiServer, client: ApiClient, sizes: list[int]
) -> None:
    for number in range(200):
        put(server, f"m{number:03}", 40_000)
    assert sum(map(len, await listed(client, limit=50))) == 200
    assert len(server.requests) - len(sizes) <= 1
    assert len(sizes) <= 2 * 200 * 40_000 // MOST_BYTES


async def test_an_object_that_alone_is_larger_is_read(
    server: FakeApiServer, client: ApiClient, sizes: list[int]
) -> None:
    put(server, "small", 10)
    put(server, "vast", MOST_BYTES + 1)
    assert sum(map(len, await listed(client))) == 2
    assert max(sizes) > MOST_BYTES


async def test_a_tenants_large_objects_do_not_keep_others_from_being_seen(
    server: FakeApiServer, client: ApiClient, sizes: list[int]
) -> None:
    mixed(server)
    informer = Informer(client, ALL, lambda body: len(body["data"]["value"]))
    async with running(informer.run()):
        await informer.synced.wait()
        assert len(informer.items) == 90
        assert informer.items[Key("m89", "ns")] == 10
    assert max(sizes) <= MOST_BYTES
