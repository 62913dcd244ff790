"""What is said of a node is the same in one object and in three, whenever the parts arrive."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from numapin_client.cache.informer_settings import InformerTiming
from numapin_client.client import ApiClient, connect
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES
from numapin_lab.controlplane.node_objects import NodeWatch, get_node, list_nodes
from numapin_lab.running_lab import _with_lines
from support.fakes.apiserver import FakeApiServer
from support.values.forms import NodeObjects, in_three

Json = dict[str, Any]

OWNER: Json = {
    "podUID": "u-1",
    "namespace": "team",
    "pod": "engine-0",
    "container": "engine",
    "cpus": "2-3",
    "mems": "0",
    "exclusive": True,
}
REPORTED = {key: OWNER[key] for key in ("podUID", "container", "cpus", "mems", "exclusive")}
BODY: Json = {
    "kind": "NodeAssignment",
    "metadata": {"name": "n", "uid": "a-1", "generation": 2},
    "spec": {"pools": {"reserved": "0", "shared": "0-1"}, "containers": [OWNER]},
    "status": {
        "observedGeneration": 2,
        "pools": {"reserved": "0", "shared": "0-1"},
        "containers": [REPORTED],
        "running": ["u-1"],
        "topology": {"cores": ["0-3"]},
    },
}
QUICK = InformerTiming(backoff_base_seconds=0.01, backoff_cap_seconds=0.05)
RESOURCES = (NODE_ASSIGNMENTS, NODE_REPORTS, NODE_TOPOLOGIES)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        yield started


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[ApiClient]:
    async with connect(server.login) as opened:
        yield opened


def put(server: FakeApiServer, objects: NodeObjects, *, only: int | None = None) -> None:
    """Put the objects there; the reports are about the UID that the server gives."""
    for number, (resource, body) in enumerate(zip(RESOURCES, objects, strict=True)):
        if only in {None, number}:
            kept = server.put(resource, about(server, body))
            kept["metadata"]["generation"] = body["metadata"].get("generation", 1)


def about(server: FakeApiServer, body: Json) -> Json:
    stored = server.objects.get((NODE_ASSIGNMENTS.collection_path(), "", "n"))
    uid = stored["metadata"]["uid"] if stored else ""
    found: Json = json.loads(json.dumps(body).replace('"a-1"', f'"{uid}"'))
    return found


def said(body: Json | None) -> Json:
    """Spec and status without what an object of v1alpha1 may leave out."""
    assert body is not None
    return {"spec": body["spec"], "status": body["status"]}


async def test_one_object_and_three_say_the_same(server: FakeApiServer, client: ApiClient) -> None:
    assert await get_node(client, "n") is None
    server.put(NODE_ASSIGNMENTS, BODY)
    for unknown in (set[str](), {"nodereports", "nodetopologies"}):
        server.unknown = unknown
        assert said(await get_node(client, "n")) == said(BODY)
        assert [said(one) for one in await list_nodes(client)] == [said(BODY)]
    server.unknown = set()
    put(server, in_three(BODY))
    assert said(await get_node(client, "n")) == said(BODY)
    assert [said(one) for one in await list_nodes(client)] == [said(BODY)]


class Seen:
    """What a watch shows."""

    def __init__(self) -> None:
        self.bodies: list[Json | None] = []
        self._changed = asyncio.Event()

    def note(self, name: str, body: Json | None) -> None:
        assert name == "n"
        self.bodies.append(body)
        self._changed.set()

    async def until(self, expected: Json | None) -> None:
        while not self.bodies or (self.bodies[-1] and said(self.bodies[-1])) != expected:
            self._changed.clear()
            await self._changed.wait()


async def test_a_report_that_arrives_before_its_assignment_is_held_back(
    server: FakeApiServer, client: ApiClient
) -> None:
    seen = Seen()
    put(server, in_three(BODY))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(NodeWatch(client, seen.note, "n", QUICK).run())
        await seen.until(said(BODY))
        count = len(seen.bodies)
        later = json.loads(json.dumps(BODY))
        later["metadata"]["generation"] = later["status"]["observedGeneration"] = 3
        later["spec"]["containers"] = later["status"]["containers"] = []
        later["status"]["running"] = []
        put(server, in_three(later), only=1)
        put(server, in_three(later), only=2)
        put(server, in_three(later), only=0)
        await seen.until(said(later))
        for body in seen.bodies[count:-1]:  # what was in force was never taken back for a moment
            assert body is not None
            if body["metadata"]["generation"] == 2:
                assert body["status"]["containers"] == [REPORTED]
        server.remove(NODE_ASSIGNMENTS, "n")
        await seen.until(None)
        running.cancel()


async def test_a_watch_goes_on_where_the_kinds_are_not_known(
    server: FakeApiServer, client: ApiClient
) -> None:
    seen = Seen()
    server.unknown = {"nodereports", "nodetopologies"}
    server.put(NODE_ASSIGNMENTS, BODY)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(NodeWatch(client, seen.note, "n", QUICK).run())
        await seen.until(said(BODY))
        server.unknown = set()
        objects = in_three(BODY)
        objects.assignment["status"] = {}
        put(server, objects)
        await seen.until(said(BODY))
        running.cancel()


def test_fields_of_v1alpha1_are_patched_in_the_form_that_an_object_has() -> None:
    body = in_three(BODY).assignment
    (line,) = body["spec"]["assigned"]
    other = OWNER | {"podUID": "u-2", "pod": "engine-1", "cpus": "7"}
    changed = _with_lines(body, {"containers": [OWNER, other]})
    assert changed.keys() == {"assigned"}
    assert changed["assigned"][0] == line
    assert changed["assigned"][1].split()[0] == "team/engine-1"
    assert "since=3" in changed["assigned"][1]
    assert _with_lines(body, {"containers": []}) == {"assigned": []}
    moved = _with_lines(body, {"pools": {"reserved": "0", "shared": "0"}})
    assert moved == {"pools": {"reservedCPUs": "0", "sharedCPUs": "0"}}
