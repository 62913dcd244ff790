"""`numapin explain` asks an API server for no more than it needs."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.main import main
from numapin_client.resources import CPU_POLICIES, NODE_ASSIGNMENTS, NODES, PODS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import Capture, asked, fill
from support.fakes.worlds.described_cluster import World, node_body
from support.values.forms import all_in_three
from support.values.operator import pod_body


@pytest.fixture(params=["one-object", "three-objects"])
async def server(full: World, request: pytest.FixtureRequest) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        items = json.loads(full.dump())["items"]
        is_apart = request.param == "three-objects"
        fill(started, {"items": all_in_three(items) if is_apart else items})
        yield started


async def test_the_server_is_asked_for_no_more_pods_than_needed(
    server: FakeApiServer, full: World, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "now.json").write_text(full.dump())
    for target in ("b", "c", "pending", "node/node-1", "policy/web"):
        status = await asked(server, tmp_path, "explain", target, "-o", "json")
        of_server = json.loads(capsys.readouterr().out)
        of_file = main(["explain", target, "--cluster", str(tmp_path / "now.json"), "-o", "json"])
        assert (status, of_server) == (of_file, json.loads(capsys.readouterr().out))
    listed = [
        one.query.get("fieldSelector", "") for one in server.requests if one.path == "/api/v1/pods"
    ]
    assert listed
    assert all(one.startswith("spec.nodeName=node-") for one in listed)


@pytest.mark.parametrize("right", ["get pods", "list nodes", "list cpupolicies", "list namespaces"])
async def test_a_missing_right_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, right: str
) -> None:
    server.forbidden.add(right)
    assert await asked(server, tmp_path, "explain", "pod/b") == 1
    captured = capsys.readouterr()
    assert f"tester may not {right}" in captured.err
    assert captured.out == ""


class Restricted:
    """Somebody who may read a pod, and nothing of the cluster."""

    def __init__(self, server: FakeApiServer, folder: Path, capsys: Capture) -> None:
        self._server, self._folder, self._capsys = server, folder, capsys
        for kind in ("nodes", "nodeassignments", "cpupolicies", "namespaces"):
            server.forbidden.update({f"get {kind}", f"list {kind}"})
        server.forbidden.add("list pods")

    def put(self, annotations: dict[str, str]) -> None:
        body = pod_body("mine", "4", node="node-1")
        body["metadata"]["annotations"] = annotations
        self._server.put(PODS, body)

    async def shown(self, target: str, status: int, *options: str) -> str:
        assert await asked(self._server, self._folder, "explain", target, *options) == status
        return " ".join(self._capsys.readouterr().out.split())

    async def explained(self, target: str, status: int) -> dict[str, Any]:
        shown = await self.shown(target, status, "-o", "json")
        (found,) = json.loads(shown)["explanations"]
        return dict(found)


@pytest.fixture
def restricted(server: FakeApiServer, tmp_path: Path, capsys: Capture) -> Restricted:
    return Restricted(server, tmp_path, capsys)


NUMBERS = "container main: wanted 4 CPUs, 2 free: 6-7"
CPUS = '{"version":1,"containers":{"main":{"cpus":"2-3","numaNodes":"0"}}}'


@pytest.mark.parametrize(
    ("annotations", "status", "wanted"),
    [
        pytest.param(
            {"numapin.io/refused": f"NotEnoughCPUs: {NUMBERS}"},
            3,
            {"verdict": "was refused; it runs on shared CPUs", "reason": "NotEnoughCPUs"},
            id="refused",
        ),
        pytest.param({"numapin.io/cpus": CPUS}, 0, {"verdict": "has CPUs of its own"}, id="cpus"),
        pytest.param({}, 0, {"verdict": "does not say that it was refused"}, id="nothing"),
        pytest.param(
            {"numapin.io/cpus": "[1", "numapin.io/refused": ""},
            0,
            {"verdict": "does not say that it was refused"},
            id="nonsense",
        ),
    ],
)
async def test_who_may_read_the_pod_alone_is_told_what_it_says(
    restricted: Restricted,
    annotations: dict[str, str],
    status: int,
    wanted: dict[str, str],
) -> None:
    restricted.put(annotations)
    for target in ("pod/mine", "mine"):
        found = await restricted.explained(target, status)
        assert wanted.items() <= found.items()
        assert found["node"] == "node-1"
        assert "tester may not list nodeassignments" in found["why"][-1]
        if status:
            assert found["why"][0] == NUMBERS
        facts = [{"subject": "container main", "text": "CPUs 2-3 on NUMA nodes 0"}]
        assert found["facts"] == (facts if "own" in wanted["verdict"] else [])
    assert "numapin-viewer" in await restricted.shown("mine", status)


async def test_a_server_without_the_crds_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.unknown.update({"cpupolicies", "nodeassignments"})
    for target in ("b", "node/node-1", "policy/web"):
        assert await asked(server, tmp_path, "explain", target) == 1
        assert "does not serve numapin.io/v1beta1; beside an older" in capsys.readouterr().err


@pytest.mark.parametrize(("pod", "node"), [("pending", "node-1"), ("b", "node-2")])
async def test_a_node_that_is_named_is_read_though_others_have_more_free_cpus(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, pod: str, node: str
) -> None:
    """Only the best of the other nodes are read; these are as good as the named one, or better."""
    server.put(NODES, node_body("node-0", "8"))
    server.put(NODE_ASSIGNMENTS, {"metadata": {"name": "node-0", "generation": 1}, "spec": {}})
    status = await asked(
        server, tmp_path, "explain", pod, "--node", node, "--nodes", "0", "-o", "json"
    )
    captured = capsys.readouterr()
    assert (status, captured.err) == (3, "")
    (found,) = json.loads(captured.out)["explanations"]
    nodes = {one["node"] for one in found["remedies"] if one["kind"] == "node"}
    assert nodes == ({"node-2"} if pod == "b" else set())


async def test_only_so_many_other_nodes_are_tried(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    for number in range(3, 6):
        name = f"node-{number}"
        server.put(NODES, node_body(name, "8"))
        metadata = {"name": name, "generation": 1}
        server.put(NODE_ASSIGNMENTS, {"metadata": metadata, "spec": {}})
    assert await asked(server, tmp_path, "explain", "b", "--nodes", "1", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["notTried"][-1] == "3 of 4 other nodes were not tried; --nodes tries more"
    assert found["tried"]["node"] == 1


async def test_everything_of_a_cluster_is_read_as_the_server_has_it(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    """A pod whose claim does not exist has no CPUs of a driver, as the operator decides too."""
    body = pod_body("claiming", "1", node="node-2")
    body["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": "gone"}]
    body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
    server.put(PODS, body)
    assert await asked(server, tmp_path, "explain", "claiming", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["verdict"] == "is about to get CPUs of its own"
    server.remove(CPU_POLICIES, "web")
    assert await asked(server, tmp_path, "explain", "claiming", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["why"] == ["no CpuPolicy selects the node"]
