"""`numapin get` of many nodes: which are shown, in which order, and how they are counted."""

import json
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path

import pytest

from numapin_cli.main import main
from numapin_cli.usage.live.get import ORDERS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill
from support.fakes.worlds.described_cluster import cluster, node_body
from support.values.forms import all_in_three
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]


def stalled(assignment: Body) -> None:
    """The enforcer of a node reports that it cannot enforce what is written."""
    conditions = assignment["status"]["conditions"]
    for one in conditions:
        bad = {"Ready": "False", "Stalled": "True", "Reconciling": "False"}[one["type"]]
        one |= {"status": bad, "reason": "CgroupsUnusable", "message": "no cpuset"}


@pytest.fixture(scope="module", params=["one-object", "three-objects"])
def dump(request: pytest.FixtureRequest) -> Body:
    """Three nodes of one policy: with two pods, one of them refused; empty; stalled. And one bare.

    As v1alpha1 and as v1beta1 have it.
    """
    world = cluster(pod_body("a", "2"), pod_body("c", "7"))
    found: Body = json.loads(world.dump())
    items = found["items"]
    (second,) = (
        one
        for one in items
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-2"
    )
    third = deepcopy(second)
    third["metadata"] |= {"name": "node-3", "uid": "uid-of-3"}
    stalled(third)
    items += [third, node_body("node-3", "8"), node_body("node-4", "8")]
    if request.param == "three-objects":
        found["items"] = all_in_three(items)
    return found


@pytest.fixture
async def server(dump: Body) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, dump)
        yield started


ALL = ["node-1", "node-2", "node-3", "node-4"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), ALL),
        (("-l", "pool in (node-2,node-4)"), ["node-2", "node-4"]),
        (("-l", "!pool"), []),
        (("--policy", "web"), ["node-1", "node-2", "node-3"]),
        (("--not-ready",), ["node-3"]),
        (("--not-ready", "-l", "pool=node-1"), []),
        (("--sort", "exclusive"), ALL),
        (("--sort", "free"), ["node-2", "node-3", "node-1", "node-4"]),
        (("--sort", "ready"), ["node-3", "node-4", "node-1", "node-2"]),
        (("--sort", "policy"), ["node-4", "node-1", "node-2", "node-3"]),
    ],
    ids=str,
)
async def test_which_nodes_are_shown_and_in_which_order(
    *,
    server: FakeApiServer,
    dump: Body,
    tmp_path: Path,
    capsys: Capture,
    flags: tuple[str, ...],
    expected: list[str],
) -> None:
    assert await asked(server, tmp_path, "get", "-o", "name", *flags) == 0
    assert capsys.readouterr().out.splitlines() == [f"node/{name}" for name in expected]
    (tmp_path / "now.json").write_text(json.dumps(dump))
    assert main(["get", "-o", "name", *flags, "--cluster", str(tmp_path / "now.json")]) == 0
    assert capsys.readouterr().out.splitlines() == [f"node/{name}" for name in expected]


def test_every_order_of_the_command_line_is_known(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "now.json").write_text(cluster().dump())
    for order in ORDERS:
        assert main(["get", "--sort", order, "--cluster", str(tmp_path / "now.json")]) == 0
        assert capsys.readouterr().out.startswith("NODE ")


async def test_nodes_are_counted_by_policy(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "get", "--summary") == 0
    head, bare, web, empty, states, stalled_line = capsys.readouterr().out.splitlines()
    assert head.split() == ["POLICY", "NODES", "READY", "EXCLUSIVE", "FREE", "REFUSED"]
    assert bare.split() == ["-", "1", "0", "0", "0", "0"]
    assert web.split() == ["web", "3", "2", "2", "16", "1"]
    assert (empty, states.split()) == ("", ["POLICY", "NOT", "READY", "NODES"])
    assert stalled_line.split() == ["web", "CgroupsUnusable", "1"]
    assert await asked(server, tmp_path, "get", "--summary", "-o", "json") == 0
    _, found = json.loads(capsys.readouterr().out)["policies"]
    assert found["states"] == {"Ready": 2, "CgroupsUnusable": 1}
    assert (found["policy"], found["nodes"], found["freeCPUs"]) == ("web", 3, 16)


async def test_documents_have_the_chosen_nodes_alone(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "get", "-l", "pool", "--sort", "ready", "-o", "json") == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [one["node"] for one in nodes] == ["node-3", "node-4", "node-1", "node-2"]
    assert nodes[2]["containers"][0]["cpus"] == "2-3"
    assert nodes[1]["containers"] == []


async def test_a_list_reads_no_hardware(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "get") == 0
    assert not any("nodetopologies" in one.path for one in server.requests)


async def test_what_matches_nothing_says_so(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "get", "-l", "pool=none") == 0
    assert capsys.readouterr().out == "no node matches\n"


@pytest.mark.parametrize(
    ("flags", "status", "error"),
    [
        (("--policy", "wep"), 1, "there is no policy wep; did you mean web?"),
        (("--not-ready", "node-1"), 2, "are for all nodes; name no NODE"),
        (("-l", "pool in x"), 2, "-l: 'pool in x' is no label selector"),
        (("--summary", "-o", "name"), 2, "--summary names no node"),
    ],
    ids=str,
)
async def test_what_a_person_gets_wrong(
    *,
    server: FakeApiServer,
    tmp_path: Path,
    capsys: Capture,
    flags: tuple[str, ...],
    status: int,
    error: str,
) -> None:
    assert await asked(server, tmp_path, "get", *flags) == status
    assert error in capsys.readouterr().err


async def test_without_the_right_to_list_nodes_labels_are_refused(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.forbidden.add("list nodes")
    assert await asked(server, tmp_path, "get", "-o", "name") == 0
    assert capsys.readouterr().out.split() == ["node/node-1", "node/node-2", "node/node-3"]
    assert await asked(server, tmp_path, "get", "-l", "pool=node-1") == 1
    assert "tester may not list nodes" in capsys.readouterr().err


async def test_a_policy_of_no_node_exists(
    server: FakeApiServer, dump: Body, tmp_path: Path, capsys: Capture
) -> None:
    (policy,) = (one for one in dump["items"] if one["kind"] == "CpuPolicy")
    unused = policy | {"metadata": policy["metadata"] | {"name": "unused", "uid": "unused"}}
    fill(server, {"items": [unused]})
    assert await asked(server, tmp_path, "get", "--policy", "unused") == 0
    assert capsys.readouterr().out == "no node matches\n"
