"""`numapin pause` and `numapin resume`, and how a paused or released node is shown."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_api.names import NODE_MODE_ANNOTATION
from numapin_cli.main import main
from numapin_client.resources import NODES, PODS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill
from support.fakes.worlds.described_cluster import cluster, node_body
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def dump() -> Body:
    """Two nodes with a policy in force, and one without."""
    found: Body = json.loads(cluster(pod_body("a", "2"), pod_body("c", "7")).dump())
    found["items"].append(node_body("node-3", "8"))
    return found


@pytest.fixture
async def server(dump: Body) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, dump)
        yield started


def modes(server: FakeApiServer) -> dict[str, str]:
    """The annotation of each Node that has it."""
    found = {}
    for (path, _, name), one in server.objects.items():
        annotations = one["metadata"].get("annotations") or {}
        if path == NODES.collection_path() and NODE_MODE_ANNOTATION in annotations:
            found[name] = annotations[NODE_MODE_ANNOTATION]
    return found


def annotate(server: FakeApiServer, node: str, value: str) -> None:
    body = server.objects[NODES.collection_path(), "", node]
    body["metadata"]["annotations"] = {NODE_MODE_ANNOTATION: value}
    server.put(NODES, body)


async def test_nodes_are_paused_and_resumed(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    for _ in range(2):
        assert await asked(server, tmp_path, "pause", "node-1", "node-2", "node-1") == 0
        assert capsys.readouterr().out == "node/node-1 paused\nnode/node-2 paused\n"
        assert modes(server) == {"node-1": "Paused", "node-2": "Paused"}
    for _ in range(2):
        assert await asked(server, tmp_path, "resume", "node-1") == 0
        assert modes(server) == {"node-2": "Paused"}


async def test_all_that_have_the_annotation_are_resumed(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    annotate(server, "node-1", "Released")
    annotate(server, "node-3", "anything")
    assert await asked(server, tmp_path, "resume", "--all") == 0
    assert capsys.readouterr().out == "node/node-1 resumed\nnode/node-3 resumed\n"
    assert not modes(server)
    assert await asked(server, tmp_path, "resume", "--all") == 0
    assert capsys.readouterr().out == "no node is paused or released\n"


async def test_a_wrong_name_leaves_all_nodes_alone(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "pause", "node-1", "node-x") == 1
    assert "there is no node node-x; did you mean node-1" in capsys.readouterr().err
    assert not modes(server)


async def test_what_may_not_be_written_is_said(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.forbidden = {"patch nodes"}
    assert await asked(server, tmp_path, "pause", "node-1") == 1
    assert "may not patch nodes" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["resume"], ["resume", "a", "--all"]])
def test_names_or_all(words: list[str], capsys: Capture) -> None:
    assert main(words) == 2
    assert "name nodes, or give --all" in capsys.readouterr().err


async def test_get_shows_which_nodes_are_set_apart(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    annotate(server, "node-1", "nonsense")
    annotate(server, "node-3", "Released")
    assert await asked(server, tmp_path, "get") == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["node-1"][-2:] == ["True,", "paused"]
    assert lines["node-2"][-1] == "True"
    assert lines["node-3"][-1] == "released"
    assert await asked(server, tmp_path, "get", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)["nodes"]
    assert [one["nodeMode"] for one in found] == ["Paused", None, "Released"]
    assert await asked(server, tmp_path, "get", "node-1", "node-3") == 0
    out = capsys.readouterr().out
    assert "Paused: nothing changes there until numapin resume node-1" in out
    assert "it is released (numapin resume node-3 ends that)" in out


async def test_status_waits_for_no_paused_node_and_names_it(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    for pod in [key for key in server.objects if key[0] == PODS.collection_path()]:
        del server.objects[pod]
    annotate(server, "node-1", "Paused")
    annotate(server, "node-3", "Released")
    await asked(server, tmp_path, "status", "-o", "json")
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"]["states"] == {"NodePaused": 1, "Ready": 1, "Released": 1}
    said = {one["what"]: (one["look"], one["blocks"]) for one in found["attention"]}
    assert said["1 node paused: node-1; nothing changes there"] == ("numapin resume node-1", False)
    released = said["1 node released: node-3; no policy governs it"]
    assert released == ("numapin resume node-3", False)


async def test_explain_says_who_ends_it(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    annotate(server, "node-1", "Paused")
    annotate(server, "node-2", "Released")
    assert await asked(server, tmp_path, "explain", "node/node-1") == 3
    assert "is paused (NodePaused)" in capsys.readouterr().out
    assert await asked(server, tmp_path, "explain", "node/node-2") == 0
    out = capsys.readouterr().out
    assert "is released" in out
    assert "numapin resume node-2" in out
