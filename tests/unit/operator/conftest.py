"""A fake API server and a client of it."""

from collections.abc import AsyncIterator

import pytest

from numapin_client.client import ApiClient, connect
from support.fakes.apiserver import FakeApiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        yield started


@pytest.fixture
async def api(server: FakeApiServer) -> AsyncIterator[ApiClient]:
    async with connect(server.login) as client:
        yield client
