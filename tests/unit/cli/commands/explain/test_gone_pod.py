"""`numapin explain` of a pod that is gone, by what numapin told about it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_client.resources import EVENTS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import Capture, asked, fill
from support.fakes.worlds.described_cluster import World
from support.values.operator import Body

REFUSED = "container main: wanted 4 CPUs, 2 free: 6-7"


@pytest.fixture
async def server(full: World) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, json.loads(full.dump()))
        yield started


def event(pod: str, reason: str, note: str, time: str, by: str = "numapin.io/operator") -> Body:
    return {
        "metadata": {"name": f"{pod}.{reason}.{time}", "namespace": "default"},
        "regarding": {"kind": "Pod", "name": pod, "namespace": "default"},
        "reportingController": by,
        "eventTime": time,
        "reason": reason,
        "note": note,
    }


async def explained(server: FakeApiServer, folder: Path, capsys: Capture, status: int) -> Body:
    assert await asked(server, folder, "explain", "pendings", "-o", "json") == status
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    return dict(found)


async def test_a_refusal_outlives_its_pod(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.put(EVENTS, event("pendings", "NotEnoughCPUs", REFUSED, "2026-01-02T00:00:00.000000Z"))
    earlier = event("pendings", "CPUsAssigned", "main: CPUs 2-5", "2026-01-01T00:00:00.000000Z")
    server.put(EVENTS, earlier)
    server.put(EVENTS, event("other", "CPUsAssigned", "main: CPUs 1", "2026-01-03T00:00:00Z"))
    pulled = event("pendings", "Pulled", "an image", "2026-01-03T00:00:00Z", by="kubelet")
    server.put(EVENTS, pulled)
    found = await explained(server, tmp_path, capsys, 3)
    assert found["verdict"] == "is gone; it was refused"
    assert found["reason"] == "NotEnoughCPUs"
    assert [one["text"] for one in found["facts"]] == [
        "CPUsAssigned: main: CPUs 2-5",
        f"NotEnoughCPUs: {REFUSED}",
        "pending: numapin explain NAME",
    ]


async def test_a_pod_that_had_its_cpus_is_well(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.put(EVENTS, event("pendings", "NotEnoughCPUs", REFUSED, "2026-01-01T00:00:00.000000Z"))
    last = {"series": {"lastObservedTime": "2026-01-05T00:00:00.000000Z", "count": 2}}
    placed = event("pendings", "CPUsAssigned", "main: CPUs 2-5", "2025-12-31T00:00:00Z")
    server.put(EVENTS, placed | last)
    found = await explained(server, tmp_path, capsys, 0)
    assert (found["verdict"], found["reason"]) == ("is gone; it had CPUs of its own", None)
    assert await asked(server, tmp_path, "explain", "pendings") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("is_forbidden", [False, True])
async def test_without_an_event_names_like_it_are_given(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, *, is_forbidden: bool
) -> None:
    if is_forbidden:
        server.put(EVENTS, event("pendings", "NotEnoughCPUs", REFUSED, "2026-01-01T00:00:00Z"))
        server.forbidden.add("list events")
    assert await asked(server, tmp_path, "explain", "pod/pendings") == 1
    assert "there is no pod pendings in namespace default; did you mean pending?" in (
        capsys.readouterr().err
    )


async def test_a_pod_that_exists_needs_no_event(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.put(EVENTS, event("a", "NotEnoughCPUs", REFUSED, "2026-01-01T00:00:00Z"))
    assert await asked(server, tmp_path, "explain", "pod/a") == 3
    assert "is gone" not in capsys.readouterr().out
    assert not any("events" in one.path for one in server.requests)
