"""The page over HTTP, beside an API server in memory: rights, changes, and who is answered."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientSession, web

from numapin_client.client import connect
from numapin_client.resources import NODE_ASSIGNMENTS, NODES
from numapin_page.live import fleet as fleet_module
from numapin_page.live.answers import ServerAnswers
from numapin_page.live.fleet import Fleet
from numapin_page.live.server_parts import ServerParts
from numapin_page.web import server as module
from numapin_page.web.server import Site
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import fill
from support.page.pictured_cluster import HOSTILE, fleet, of_kind, pictured
from support.page.served import Seen
from support.real.waiting import eventually

Json = dict[str, Any]


@dataclass
class Served:
    """A page and its API server."""

    api: FakeApiServer
    session: ClientSession
    fleet: Fleet
    url: str

    async def get(self, path: str, status: int = 200) -> Json:
        async with self.session.get(self.url + path) as response:
            assert response.status == status
            found: Json = await response.json()
            return found


@asynccontextmanager
async def serving(api: FakeApiServer) -> AsyncIterator[Served]:
    """Serve a page of an API server."""
    lines = Fleet()
    async with connect(api.login) as client, asyncio.TaskGroup() as tasks:
        parts = ServerParts(client, lines.changed)
        running = [tasks.create_task(parts.run()), tasks.create_task(lines.run(parts))]
        hosts = set[str]()
        site = Site(lines, parts, ServerAnswers(client), hosts, {"version": "1"})  # type: ignore[arg-type]
        runner = web.AppRunner(
            site.application(), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        hosts.add(f"127.0.0.1:{port}")
        async with ClientSession() as session:
            yield Served(api, session, lines, f"http://127.0.0.1:{port}")
        await runner.cleanup()
        for one in running:
            one.cancel()


@pytest.fixture(scope="module")
def pictures() -> dict[str, list[Json]]:
    """Objects of clusters; each was decided in an event loop of its own."""
    return {
        "fleet": fleet(),
        "added": pictured("laptop-1s1n-4c-smt2", "added", "2"),
        "changed": pictured("laptop-1s1n-4c-smt2", "laptop", "2"),
    }


@pytest.fixture
async def api(pictures: dict[str, list[Json]]) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as server:
        fill(server, {"items": pictures["fleet"]})
        yield server


def names(seen: Seen) -> bool:
    return len(seen.rows) == 8


async def test_a_browser_gets_every_node_and_then_what_changes(
    api: FakeApiServer, pictures: dict[str, list[Json]]
) -> None:
    async with serving(api) as served, served.session.get(f"{served.url}/events") as stream:
        seen = Seen()
        await seen.until(stream, names)
        assert seen.rows["laptop"]["free"] == 3
        added = pictures["added"]
        fill(api, {"items": [of_kind(added, "Node"), of_kind(added, "NodeAssignment")]})
        await seen.until(stream, lambda one: one.rows.get("added", {}).get("kind") == "ready")
        version = seen.rows["laptop"]["version"]
        changed = of_kind(pictures["changed"], "NodeAssignment")
        fill(api, {"items": [changed]})
        await seen.until(stream, lambda one: one.rows["laptop"]["version"] != version)
        assert seen.rows["laptop"]["free"] == 4
        for resource in (NODE_ASSIGNMENTS, NODES):
            api.remove(resource, "added")
        await seen.until(stream, lambda one: "added" not in one.rows)


async def test_without_rights_the_page_says_which_are_missing(api: FakeApiServer) -> None:
    api.forbidden = {"list nodeassignments"}
    async with serving(api) as served, served.session.get(f"{served.url}/events") as stream:
        seen = Seen()
        served.fleet.wake()
        await seen.until(stream, lambda one: one.status.get("forbidden") or poke(served))
        assert "may not list nodeassignments.numapin.io" in seen.status["problem"]
        assert seen.rows == {}, "whether a policy governs them is not known"


def poke(served: Served) -> bool:
    """Have the page look again; the command does so each second."""
    served.fleet.wake()
    return False


async def test_without_the_right_to_read_nodes_the_others_are_shown(api: FakeApiServer) -> None:
    api.forbidden = {"list nodes", "list nodereports"}
    async with serving(api) as served, served.session.get(f"{served.url}/events") as stream:
        seen = Seen()
        await seen.until(
            stream,
            lambda one: (len(one.rows) == 7 and len(one.status["notes"]) == 2) or poke(served),
        )
        assert seen.status["problem"] == ""
        assert "nodes" in "".join(seen.status["notes"])


async def test_a_node_and_a_pod_are_answered_from_the_server(api: FakeApiServer) -> None:
    async with serving(api) as served, served.session.get(f"{served.url}/events") as stream:
        await Seen().until(stream, names)
        page = await served.get("/api/nodes/epyc")
        assert len(page["containers"]) == 9
        assert (await served.get("/api/amounts/epyc"))["leftUnknown"] == ""
        assert (await served.get("/api/pods/default/epyc-9"))["steps"][-1]["state"] == "failed"
        found = await served.get("/api/search?pod=epyc-9")
        assert found["pods"] == [{"pod": "default/epyc-9", "node": "epyc"}]
        assert "there is no node x" in (await served.get("/api/nodes/x", 404))["error"]
        assert "there is no pod x" in (await served.get("/api/pods/default/x", 404))["error"]
        assert (await served.get("/api/nodes/stuck"))["message"] == HOSTILE


async def test_every_answer_forbids_what_is_not_its_own(api: FakeApiServer) -> None:
    async with serving(api) as served:
        for path in ("/", "/main.js", "/api/nodes/x", "/nothing", "/events"):
            async with served.session.get(served.url + path) as response:
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/events", "/api/nodes/epyc"])
async def test_another_name_of_the_address_gets_nothing(api: FakeApiServer, path: str) -> None:
    async with serving(api) as served:
        headers = {"Host": "evil.example"}
        async with served.session.get(served.url + path, headers=headers) as response:
            assert response.status == 403
            assert "not served as 'evil.example'" in (await response.json())["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_it_takes_no_request_that_could_change_anything(
    api: FakeApiServer, method: str
) -> None:
    async with serving(api) as served:
        for path in ("/", "/api/nodes/epyc", "/events"):
            async with served.session.request(method, served.url + path) as response:
                assert response.status == 405


async def test_a_reader_too_many_is_told_so(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_READERS", 1)
    async with serving(api) as served, served.session.get(f"{served.url}/events") as first:
        await Seen().until(first, names)
        assert "open already" in (await served.get("/events", 503))["error"]
    assert served.fleet.readers == 0


def test_a_slow_reader_is_owed_each_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often nodes change, what waits for a reader is at most all nodes."""
    monkeypatch.setattr(fleet_module, "ROWS", 2)
    lines = Fleet()
    lines.rows = {"a": "{}", "b": "{}", "c": "{}"}
    reader = lines.subscribe()
    for _ in range(1000):
        reader.tell(["a", "c"])
    assert reader.taken() == ["a", "b"]
    assert reader.taken() == ["c"]
    assert reader.taken() == []
    assert lines.message(["a", "gone"]) == '{"rows":[{}],"gone":["gone"]}'


async def test_a_node_that_cannot_be_shown_is_a_line_of_its_own() -> None:
    class Broken:
        def names(self) -> set[str]:
            return {"bad"}

        def state(self, node: str) -> Any:
            raise KeyError(node)

    lines = Fleet()
    lines.changed(["bad"])
    await lines.refresh(Broken())  # type: ignore[arg-type]
    row = json.loads(lines.rows["bad"])
    assert (row["kind"], row["message"]) == ("stalled", "cannot be shown: KeyError('bad')")


async def test_a_reader_that_does_not_read_is_left(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection takes what the kernel takes, and no more."""
    monkeypatch.setattr(module, "SLOW_SECONDS", 0.2)
    async with serving(api) as served:
        async with served.session.get(f"{served.url}/events") as quick:
            await Seen().until(quick, names)
        await eventually(lambda: served.fleet.readers == 0)
        served.fleet.rows |= {f"n{one}": json.dumps({"name": "x" * 10_000}) for one in range(2000)}
        host, _, port = served.url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1)
        writer.write(f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        await eventually(lambda: served.fleet.readers == 1)
        await eventually(lambda: served.fleet.readers == 0)
        assert not reader.at_eof(), "it has not read what was sent"
        writer.close()
