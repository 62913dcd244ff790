"""A fake API server and a client of it."""

from collections.abc import AsyncIterator

import pytest

from numapin_client.client import connect
from numapin_client.transport.timeouts import Timeouts
from support.fakes.apiserver import FakeApiServer
from support.values.informers import CountingClient


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        yield started


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[CountingClient]:
    async with connect(server.login, Timeouts(request_seconds=20)) as opened:
        yield CountingClient(opened.connection)
