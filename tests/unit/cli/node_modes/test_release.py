"""`numapin release`: which nodes, what is wrong with the flags, and the pods of `--pods`."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from numapin_cli.node_modes.pods import release_pod, why_failed, why_waiting
from numapin_client.resources import NODE_ASSIGNMENTS, NODES
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill
from support.fakes.worlds.described_cluster import cluster, node_body
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def dump() -> Body:
    found: Body = json.loads(cluster(pod_body("a", "2")).dump())
    found["items"].append(node_body("node-3", "8"))
    return found


@pytest.fixture
async def server(dump: Body) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, dump)
        yield started


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name nodes with --node, or give --all"),
        (["--all", "--node", "a"], "name nodes with --node, or give --all"),
        (["--node", "a", "-l", "pool=x"], "-l chooses among all nodes"),
        (["--all", "--pods"], "--pods needs the --image"),
        (["--all", "--image", "x"], "--image needs --pods"),
        (["--all", "--", "--cri-socket=/x"], "flags after -- are for the enforcer"),
        (["--all", "--at-once", "0"], "'0' is no number of nodes, at least 1"),
        (["--all", "--timeout", "soon"], "'soon' is no duration"),
        (["--all", "-l", "pool in x"], "is no label selector"),
    ],
    ids=str,
)
async def test_wrong_usage_changes_nothing(
    *,
    server: FakeApiServer,
    tmp_path: Path,
    capsys: Capture,
    words: list[str],
    said: str,
) -> None:
    if "--at-once" in words or "--timeout" in words:
        with pytest.raises(SystemExit, match="2"):
            main(["release", *words])
    elif "--" in words:
        assert main(["release", *words]) == 2
    else:
        assert await asked(server, tmp_path, "release", *words) == 2
    assert said in capsys.readouterr().err
    assert all(request.method == "GET" for request in server.requests)


async def test_a_wrong_name_changes_nothing(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "release", "--node", "node-1", "--node", "node-9") == 1
    assert "there is no node node-9; did you mean node-1" in capsys.readouterr().err
    assert all(request.method == "GET" for request in server.requests)


async def test_without_crds_it_says_what_happens_by_itself(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.unknown = {NODE_ASSIGNMENTS.plural}
    assert await asked(server, tmp_path, "release", "--all") == 1
    said = capsys.readouterr().err
    assert "releases its node 10 minutes after that; for nodes without one, give --pods" in said


async def test_nothing_to_release_is_no_failure(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "release", "--all", "-l", "pool=node-3") == 0
    assert "there is nothing to release" in capsys.readouterr().out
    assert all(request.method == "GET" for request in server.requests)


async def test_a_node_that_is_gone_needs_no_enforcer(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.remove(NODES, "node-1")
    assert await asked(server, tmp_path, "release", "--node", "node-1") == 0
    assert (NODE_ASSIGNMENTS.collection_path(), "", "node-1") not in server.objects
    assert "node/node-1 released (1 of 1)" in capsys.readouterr().out


async def test_what_may_not_be_written_stops_and_is_said(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.forbidden = {"patch nodes"}
    assert await asked(server, tmp_path, "release", "--all", "--at-once", "1") == 3
    said = capsys.readouterr()
    assert "node/node-1 not released: tester may not patch nodes" in said.out
    assert "2 nodes left: node-1, node-2" in said.err
    assert said.err.endswith("Go on with: numapin release --all\n")


def flags(*given: str) -> list[str]:
    (container,) = release_pod("n", "kube-system", "image", given)["spec"]["containers"]
    command: list[str] = container["command"]
    return command


def test_the_pod_has_the_hosts_paths_below_its_mount() -> None:
    pod = release_pod("worker.example.com", "ops", "registry/enforcer:1", ())
    assert pod["metadata"]["namespace"] == "ops"
    assert pod["spec"]["nodeName"] == "worker.example.com"
    (container,) = pod["spec"]["containers"]
    assert "--node-name=worker.example.com" in container["command"]
    paths = [one for one in flags() if one.startswith("--") and "=/" in one]
    assert paths
    assert all("=/host/" in one for one in paths)


def test_other_paths_take_the_place_of_the_usual_ones() -> None:
    command = flags("--cri-socket=/run/crio/crio.sock", "--cgroup-root=/kube")
    assert [one for one in command if one.startswith("--cri-socket")] == [
        "--cri-socket=/host/run/crio/crio.sock"
    ]
    assert command[-1] == "--cgroup-root=/kube"
    assert len(command) == len(flags()) + 1


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"terminated": {"message": "a log\nnumapin-enforcer: cgroup x is left\n"}}, "x is left"),
        ({"terminated": {}}, "it has said nothing"),
    ],
)
def test_what_a_failed_pod_says(state: Body, expected: str) -> None:
    assert expected in why_failed({"containerStatuses": [{"state": state}]})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "ErrImagePull",
        ),
        ({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}, "it runs still"),
        ({"phase": "Pending"}, "its kubelet has not begun it"),
    ],
)
def test_what_a_pod_waits_for(status: dict[str, Any], expected: str) -> None:
    assert why_waiting(status) == expected


def test_an_evicted_pod_says_why() -> None:
    assert why_failed({"phase": "Failed", "message": "The node was low on memory"}).endswith(
        "low on memory"
    )
