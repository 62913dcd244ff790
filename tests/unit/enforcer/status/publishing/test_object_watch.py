"""A watch of one object says what there is, that there is nothing, or does not know."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.client import ApiClient, connect
from numapin_client.errors import ForbiddenError, NotFoundError, UnavailableError
from numapin_client.resources import NODE_REPORTS
from numapin_enforcer.status.publishing.object_watch import REFUSED_SECONDS, ObjectWatch
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.real.waiting import eventually, running

OBJECT = {"metadata": {"name": "n"}}


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as made:
        yield made


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[ApiClient]:
    async with connect(server.login) as made:
        yield made


class Seen:
    """What a watch of the object `n` has reported."""

    def __init__(self, client: ApiClient) -> None:
        self.bodies: list[Any] = []
        self.watch = ObjectWatch(client, NODE_REPORTS, "n", self.bodies.append)

    @property
    def exists(self) -> bool | None:
        """By the last report; None without one."""
        return self.bodies[-1] is not None if self.bodies else None


async def test_an_object_is_reported_when_it_comes_changes_and_goes(
    server: FakeApiServer, client: ApiClient
) -> None:
    server.put(NODE_REPORTS, {"metadata": {"name": "of-another-node"}})
    seen = Seen(client)
    async with running(seen.watch.run()):
        await eventually(lambda: seen.exists is False, "the list without it")
        server.put(NODE_REPORTS, OBJECT)
        await eventually(lambda: seen.exists)
        server.put(NODE_REPORTS, OBJECT | {"status": {"driftCount": 1}})
        await eventually(lambda: seen.bodies[-1].get("status") == {"driftCount": 1})
        server.remove(NODE_REPORTS, "n")
        await eventually(lambda: seen.exists is False, "the deletion")


@pytest.mark.parametrize("why", ["unknown", "forbidden"])
async def test_a_refusal_means_that_there_is_none_until_it_ends(
    server: FakeApiServer, client: ApiClient, why: str
) -> None:
    server.put(NODE_REPORTS, OBJECT)
    refused = (
        (server.unknown, {"nodereports"})
        if why == "unknown"
        else (server.forbidden, {"list nodereports", "watch nodereports"})
    )
    seen = Seen(client)
    refused[0].update(refused[1])
    async with running(seen.watch.run()):
        await eventually(lambda: seen.exists is False, "the refusal")
        refused[0].clear()
        await eventually(lambda: seen.exists)
        refused[0].update(refused[1])
        server.cut()
        await eventually(lambda: seen.exists is False, "the next refusal")
        refused[0].clear()
        await eventually(lambda: seen.exists, "the same object, which has not changed")


async def test_a_server_that_does_not_answer_says_nothing(
    server: FakeApiServer, client: ApiClient
) -> None:
    server.put(NODE_REPORTS, OBJECT)
    server.answers = [Answer(503)] * 3
    seen = Seen(client)
    async with running(seen.watch.run()):
        await eventually(lambda: len(server.requests) > 2)
        before = list(seen.bodies)
        await eventually(lambda: seen.exists)
        server.cut()
        await asyncio.sleep(0.05)
    assert before == []
    assert None not in seen.bodies


def test_refusals_are_asked_about_more_rarely_than_failures() -> None:
    timing = InformerTiming(refused_cap_seconds=REFUSED_SECONDS)
    told = {"message": "no"}
    for kind, status in ((NotFoundError, 404), (ForbiddenError, 403)):
        assert timing.most_seconds(kind("GET x", status, told)) == REFUSED_SECONDS
    assert timing.most_seconds(UnavailableError("GET x", 503, told)) == timing.backoff_cap_seconds
