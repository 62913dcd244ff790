"""A Lease on a slow API server: who can take it, who keeps it, and that nobody leads too long."""

import asyncio

import pytest

from numapin_client.client import ApiClient, Chunk, Source
from numapin_client.errors import ConflictError, ConnectionFailedError, NotFoundError
from numapin_client.login.credentials import Login
from numapin_client.resources import Json, Key, Resource
from numapin_client.transport.connection import Connection
from numapin_operator.installation.leader_election import LeaderElector
from numapin_operator.installation.leadership import Leadership
from support.fakes.virtual_loop import LoopClock, run_virtually
from support.real.waiting import running

LEASE = Key("numapin-operator", "numapin-system")


class SlowServer:
    """One Lease; `seconds` is how long each request takes, half of it each way."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.away = seconds, False
        self.lease: Json | None = None
        self.version = 0

    async def pass_on(self) -> None:
        await asyncio.sleep(self.seconds / 2)
        if self.away:
            raise ConnectionFailedError("PUT", "connection refused")

    def put(self, body: Json) -> Json:
        self.version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self.version)}
        self.lease = body | {"metadata": metadata}
        return self.lease


class SlowApi(ApiClient):
    """A client of it."""

    def __init__(self, server: SlowServer) -> None:
        super().__init__(Connection(Login("http://nowhere.invalid", "a test")))
        self._server = server

    async def get(self, resource: Resource, key: Key) -> Json:
        await self._server.pass_on()
        found = self._server.lease
        await self._server.pass_on()
        if found is None:
            raise NotFoundError(f"GET {key}", 404, {"reason": "NotFound"})
        return found

    async def create(
        self, resource: Resource, body: Json, subresource: str = "", *, field_manager: str = ""
    ) -> Json:
        await self._server.pass_on()
        made = self._server.put(body)
        await self._server.pass_on()
        return made

    async def update(self, resource: Resource, body: Json, subresource: str = "") -> Json:
        await self._server.pass_on()
        held = self._server.lease
        if held is None or held["metadata"] != body["metadata"]:
            raise ConflictError("PUT", 409, {"reason": "Conflict"})
        made = self._server.put(body)
        await self._server.pass_on()
        return made

    async def list_chunk(
        self,
        source: Source,
        next_token: str = "",
        limit: int = 500,
        most_bytes: int | None = None,
    ) -> Chunk:
        await self._server.pass_on()
        found = self._server.lease
        await self._server.pass_on()
        return Chunk([found] if found else [], "1", "", 0)


def elector(server: SlowServer, name: str = "one") -> LeaderElector:
    return LeaderElector(SlowApi(server), LEASE, name, leadership=Leadership(LoopClock()))


async def led_seconds(one: LeaderElector, seconds: int) -> int:
    """In how many of the next seconds it leads."""
    led = 0
    for _ in range(seconds):
        await asyncio.sleep(1)
        led += one.leadership.holds()
    return led


@pytest.mark.parametrize("latency", [0.1, 1.5, 2.0, 3.0])
def test_a_replica_takes_the_lead_of_a_slow_server_and_keeps_it(latency: float) -> None:
    """Before, its four requests had 5 s together."""

    async def play() -> int:
        one = elector(SlowServer(latency))
        async with running(one.run()):
            async with asyncio.timeout(30):
                await one.leading.wait()
            return await led_seconds(one, 300)

    assert run_virtually(play()) == 300


@pytest.mark.parametrize("latency", [2.0, 3.0, 4.0, 4.5])
def test_a_leader_keeps_the_lead_when_the_server_becomes_slow(latency: float) -> None:
    """Before, one of 4 s for each request lost it, by the pause between two renewals."""

    async def play() -> int:
        server = SlowServer(0.1)
        one = elector(server)
        async with running(one.run()):
            await one.leading.wait()
            server.seconds = latency
            return await led_seconds(one, 300)

    assert run_virtually(play()) == 300


@pytest.mark.parametrize("latency", [0.1, 2.0, 4.5, 6.0])
def test_a_leader_whose_server_is_away_stops_before_another_may_begin(latency: float) -> None:
    """What was sent may have arrived, and what was answered may have been lost."""

    async def play() -> tuple[float, float]:
        server = SlowServer(0.1)
        one, other = elector(server), elector(server, "other")
        async with running(one.run()), running(other.run()):
            await asyncio.sleep(10)
            assert one.leadership.holds() or other.leadership.holds()
            server.seconds = latency
            await asyncio.sleep(20)
            both = 0.0
            for step in range(4000):
                server.away = step % 400 in range(100, 350)
                await asyncio.sleep(0.1)
                both += one.leadership.holds() and other.leadership.holds()
            return both, server.version

    both, renewals = run_virtually(play())
    assert both == 0
    assert renewals > 1
