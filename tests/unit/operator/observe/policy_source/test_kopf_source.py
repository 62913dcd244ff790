"""kopf: how it logs in, which events and lists it reports, that it is started again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from numapin_client.login.credentials import Login
from numapin_daemon.clock import Clock
from numapin_operator.observe.contact import LONGEST_BACKOFF_SECONDS
from numapin_operator.observe.policy_source.kopf_source import (
    EndlessBackoffs,
    EventHandlers,
    KopfSource,
    build_settings,
)
from support.fakes.manual_clock import ManualClock
from support.real.waiting import eventually, running
from support.values.operator import policy_body

COLLECTION = "/apis/numapin.io/v1beta1/cpupolicies"


class Token:
    """A credential that is replaced from outside."""

    def __init__(self) -> None:
        self.read, self.present = "old", "old"

    async def authorization(self) -> str:
        return f"Bearer {self.read}"

    async def renew(self) -> None:
        self.read = self.present


class Server:
    """Answers as an API server that serves policies, and accepts one token."""

    def __init__(self) -> None:
        self.accepts, self.unwell = "old", False
        self.watch_status, self.refused = 0, 0
        self.asked: list[str] = []
        self.streams: list[asyncio.Queue[bytes | None]] = []
        self.items: list[dict[str, Any]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if request.headers.get("Authorization") != f"Bearer {self.accepts}":
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        if self.watch_status and "watch" in request.query:
            self.refused += 1
            return web.json_response({"kind": "Status"}, status=self.watch_status)
        if self.unwell and "watch" in request.query:
            return web.json_response({"kind": "Status", "code": 410}, status=410)
        if "watch" in request.query:
            return await self.stream(request)
        return web.json_response(self.body(request.path))

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.streams.append(lines)
        while (line := await lines.get()) is not None:
            await response.write(line)
        return response

    def body(self, path: str) -> dict[str, Any]:
        if path == COLLECTION:
            return {"metadata": {"resourceVersion": "5"}, "items": self.items}
        if path == "/apis":
            version = {"groupVersion": "numapin.io/v1beta1", "version": "v1beta1"}
            group = {"name": "numapin.io", "versions": [version], "preferredVersion": version}
            return {"groups": [group]}
        if path == "/apis/numapin.io/v1beta1":
            return {"resources": [discovered("cpupolicies", "CpuPolicy")]}
        if path == "/api/v1":
            return {"resources": [discovered("namespaces", "Namespace")]}
        return {"versions": ["v1"]}


def discovered(plural: str, kind: str) -> dict[str, Any]:
    return {
        "name": plural,
        "kind": kind,
        "singularName": kind.lower(),
        "namespaced": False,
        "verbs": ["list", "watch", "patch"],
    }


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    for stream in made.streams:
        stream.put_nowait(None)
    await runner.cleanup()


class Operator:
    """What the operator does with kopf: takes events in, and counts lists."""

    def __init__(self, server: Server, clock: Clock | None = None) -> None:
        self.token = Token()
        self.events: list[tuple[str, bool]] = []
        self.lists = 0
        self._loop = asyncio.get_running_loop()
        login = Login(server=server.url, origin="a test", credentials=(self.token,))
        self.connections = 0
        handlers = EventHandlers(self._put, self._drop, self._listed, self._connected)
        self.source = KopfSource(login, handlers, clock)

    def _put(self, body: Any) -> None:
        assert asyncio.get_running_loop() is self._loop
        self.events.append((body["metadata"]["name"], False))

    def _drop(self, body: Any) -> None:
        assert asyncio.get_running_loop() is self._loop
        self.events.append((body["metadata"]["name"], True))

    def _connected(self) -> None:
        assert asyncio.get_running_loop() is self._loop
        self.connections += 1

    def _listed(self) -> None:
        assert asyncio.get_running_loop() is self._loop
        self.lists += 1


async def test_lists_and_events_arrive(server: Server) -> None:
    server.items = [policy_body("a", version=3)]
    operator = Operator(server)
    async with running(operator.source.run()):
        await eventually(lambda: len(server.streams) == 1)
        for stream in server.streams:
            stream.put_nowait(
                b'{"type":"DELETED","object":{"metadata":'
                b'{"name":"a","uid":"uid-a","resourceVersion":"7"}}}\n'
            )
        await eventually(lambda: ("a", True) in operator.events)
    assert ("a", False) in operator.events
    assert operator.lists == 1, "the list of policies, no watches, no other kinds"


async def test_a_user_without_a_name_can_run_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in the operator's pod: /etc/passwd of its image has no entry for its UID."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr("getpass.getuser", nameless)
    operator = Operator(server)
    async with running(operator.source.run()):
        await eventually(lambda: operator.connections == 1 or "kopf ended" in caplog.text)
    assert "kopf ended" not in caplog.text


async def test_it_lists_again_when_history_is_lost(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator(server)
    async with running(operator.source.run()):
        await eventually(lambda: len(server.streams) == 1)
        for stream in list(server.streams):
            stream.put_nowait(b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n')
        await eventually(lambda: operator.lists == 2)
    assert "kopf ended" not in caplog.text


async def test_it_never_writes(server: Server) -> None:
    server.items = [policy_body("a", version=3)]
    operator = Operator(server)
    async with running(operator.source.run()):
        await eventually(lambda: bool(operator.events))
    assert {path.partition("?")[0] for path in server.asked} <= {
        "/api",
        "/apis",
        "/api/v1",
        "/apis/numapin.io/v1beta1",
        COLLECTION,
    }


async def test_a_token_that_was_replaced_is_read_again(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator(server)
    server.accepts = operator.token.present = "new"
    async with running(operator.source.run()):
        await eventually(lambda: len(server.streams) == 1)
    assert "kopf ended" not in caplog.text


async def test_it_is_started_again_when_it_ends(server: Server) -> None:
    """kopf does not expect 410 as the status of a watch, only as an event of one."""
    server.unwell = True
    operator = Operator(server)
    async with running(operator.source.run()):
        await eventually(lambda: operator.source.problem is not None)
        assert "410" in operator.source.missing()["kopf"]
        server.unwell = False
        await eventually(lambda: len(server.streams) == 1)
        assert operator.source.missing() == {}


async def test_a_watch_that_is_forbidden_is_reported_after_a_while(server: Server) -> None:
    """kopf retries without an end, and would say nothing."""
    clock = ManualClock()
    operator = Operator(server, clock)
    async with running(operator.source.run()):
        await eventually(lambda: operator.connections == 1)
        await clock.advance(60)
        assert operator.source.missing() == {}
        server.watch_status = 503
        for stream in list(server.streams):
            stream.put_nowait(None)
        await eventually(lambda: server.refused >= 2)
        assert operator.source.missing() == {}
        await clock.advance(12)
        assert operator.source.missing() == {
            "cpupolicies": "out of date for 12 s: 503 Service Unavailable"
        }
        server.watch_status = 0
        await eventually(lambda: not operator.source.missing())


async def test_it_lists_again_on_request(server: Server) -> None:
    operator = Operator(server)
    async with running(operator.source.run()):
        await eventually(lambda: operator.connections == 1)
        operator.source.list_again()
        await eventually(lambda: operator.lists == 2)


def test_watches_end_soon_and_are_given_up_when_silent() -> None:
    """The server ends them first, so that what is given up was really silent."""
    watching = build_settings().watching
    assert watching.server_timeout < watching.inactivity_timeout <= 50  # type: ignore[operator]


def test_attempts_have_no_end() -> None:
    delays = iter(EndlessBackoffs())
    assert all(0 < next(delays) <= LONGEST_BACKOFF_SECONDS for _ in range(1000))
