"""A played enforcer reports as one of this version, or as an older one, and says the same."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from numapin_client.cache.informer import Informer
from numapin_client.client import ApiClient, Source, connect
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    Key,
    Resource,
)
from numapin_lab.controlplane.node_objects import get_node
from numapin_lab.played import enforcers
from numapin_lab.played.enforcers import Enforcers, _uid
from numapin_lab.played.reports import slim
from support.fakes.apiserver import FakeApiServer
from support.real.waiting import eventually
from support.values.forms import in_three

Json = dict[str, Any]

NODE = "node-00001"
MACHINE = {"numaNodes": [{"id": 0, "cpus": "0-7", "memoryBytes": 8 << 30}], "cores": ["0-7"]}
SPEC: Json = {
    "pools": {"reserved": "0", "shared": "0-3"},
    "containers": [
        {
            "podUID": "u-1",
            "namespace": "team",
            "pod": "engine-0",
            "container": "engine",
            "cpus": "4-5",
            "exclusive": True,
        }
    ],
    "refused": [{"podUID": "u-9", "namespace": "team", "pod": "x", "reason": "R", "message": "m"}],
}


def assignment() -> Json:
    metadata = {"name": NODE, "uid": "a-1", "generation": 4}
    return {"kind": "NodeAssignment", "metadata": metadata, "spec": SPEC}


@asynccontextmanager
async def playing(
    server: FakeApiServer, notes: io.StringIO, *, older: bool
) -> AsyncIterator[ApiClient]:
    async with connect(server.login) as api, asyncio.TaskGroup() as tasks:
        played = Enforcers(api, 0, [MACHINE], notes)
        running = [
            Informer(api, Source(NODE_ASSIGNMENTS), slim, played.note).run(),
            played.write(),
        ]
        if not older:
            running.append(Informer(api, Source(NODE_REPORTS), _uid, played.note_reports).run())
        started = [tasks.create_task(one) for one in running]
        try:
            yield api
        finally:
            for task in started:
                task.cancel()


def status(server: FakeApiServer, resource: Resource) -> Json:
    found: Json = server.objects[resource.collection_path(), "", NODE].get("status") or {}
    return found


async def _told(api: ApiClient) -> Json:
    """What is reported of the node once its container runs and its hardware is known."""
    found = await get_node(api, NODE)
    told: Json = (found or {}).get("status") or {}
    return told if told.get("containers") and told.get("topology") else {}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforcers, "START_SECONDS", 0.01)
    monkeypatch.setattr(enforcers, "AGAIN_SECONDS", 0.01)


@pytest.mark.parametrize("lines", [True, False], ids=["lines", "entries"])
@pytest.mark.parametrize("older", [True, False], ids=["older", "this version"])
async def test_it_reports_where_its_version_does_and_says_the_same(
    older: bool, lines: bool
) -> None:
    notes = io.StringIO()
    async with FakeApiServer() as server:
        body = in_three(assignment()).assignment if lines else assignment()
        server.put(NODE_ASSIGNMENTS, body)["metadata"]["generation"] = 4
        for resource in (NODE_REPORTS, NODE_TOPOLOGIES):
            server.put(resource, {"metadata": {"name": NODE}})
        async with playing(server, notes, older=older) as api:
            told = await eventually(lambda: _told(api), "all of it")
    assert told["observedGeneration"] == 4
    assert told["running"] == ["u-1"]
    assert [one["cpus"] for one in told["containers"]] == ["4-5"]
    assert told["pools"]["shared"] == "0-3"
    assert told["topology"]["cores"] == ["0-7"]
    assert ("observedGeneration" in status(server, NODE_ASSIGNMENTS)) is older
    assert ("observed" in status(server, NODE_REPORTS)) is not older
    assert {line.split()[1] for line in notes.getvalue().splitlines()} == {NODE, "u-1", "u-9"}


async def test_it_moves_to_its_report_when_that_is_created_and_back() -> None:
    async with FakeApiServer() as server:
        server.put(NODE_ASSIGNMENTS, assignment())["metadata"]["generation"] = 4
        async with playing(server, io.StringIO(), older=False) as api:
            await eventually(lambda: "containers" in status(server, NODE_ASSIGNMENTS))
            patch = {"status": {"refused": 1}}
            await api.merge_patch(NODE_ASSIGNMENTS, Key(NODE), patch, subresource="status")
            server.put(NODE_REPORTS, {"metadata": {"name": NODE}})
            await eventually(lambda: "observed" in status(server, NODE_REPORTS))
            server.put(NODE_TOPOLOGIES, {"metadata": {"name": NODE}})  # a moment later
            await eventually(lambda: "cores" in status(server, NODE_TOPOLOGIES))
            await eventually(lambda: status(server, NODE_ASSIGNMENTS) == {"refused": 1})
            for resource in (NODE_REPORTS, NODE_TOPOLOGIES):
                server.remove(resource, NODE)
            await eventually(lambda: "topology" in status(server, NODE_ASSIGNMENTS))
            assert status(server, NODE_ASSIGNMENTS)["observedGeneration"] == 4
