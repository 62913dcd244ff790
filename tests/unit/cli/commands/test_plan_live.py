"""`numapin plan --live`: reads the cluster itself, and answers as by a dump of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_cli.main import main
from numapin_cli.scripting.documents import document, json_list
from numapin_client.resources import (
    NODE_REPORTS,
    NODE_TOPOLOGIES,
    PODS,
    RESOURCE_CLAIMS,
    WORKLOAD_RESOURCES,
)
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import Capture, asked, fill
from support.fakes.worlds.described_cluster import cluster
from support.values.forms import all_in_three
from support.values.operator import Body, pod_body

HASH = "7d9c8b"


def of_web(name: str, cpus: str) -> Body:
    """A pod of Deployment web, whose pods are replaced one after the other."""
    body = pod_body(name, cpus)
    owner = {"kind": "ReplicaSet", "name": f"web-{HASH}", "controller": True, "uid": "uid-web"}
    body["metadata"] |= {"ownerReferences": [owner], "labels": {"pod-template-hash": HASH}}
    return body


@pytest.fixture(scope="module", params=["one-object", "three-objects"])
def dump(request: pytest.FixtureRequest) -> Body:
    world = cluster(
        of_web("web-a", "2"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("c", "2", node="node-2"),
        pod_body("pending", "4", node=""),
    )
    found: Body = json.loads(world.dump())
    if request.param == "three-objects":
        found["items"] = all_in_three(found["items"])
    return found


@pytest.fixture
async def server(dump: Body) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, dump)
        yield started


POLICY = """\
apiVersion: numapin.io/v1beta1
kind: CpuPolicy
metadata: {name: web}
spec: {reserved: {count: 4}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: new}
spec:
  nodeName: node-2
  containers: [{name: main, resources: {limits: {cpu: 2, memory: 64Mi}}}]
"""
AGAIN = POD.replace("name: new", "name: c").replace("cpu: 2", "cpu: 3")
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  strategy: {type: Recreate}
  template:
    spec:
      nodeName: node-1
      containers: [{name: main, resources: {limits: {cpu: 3, memory: 64Mi}}}]
"""
FILES = {"none": "", "policy": POLICY, "pod": POD, "pod-again": AGAIN, "workload": DEPLOYMENT}


@pytest.mark.parametrize("output", ["json", "diff"])
@pytest.mark.parametrize("name", FILES)
async def test_the_answer_is_that_of_a_dump(
    *, server: FakeApiServer, dump: Body, tmp_path: Path, capsys: Capture, name: str, output: str
) -> None:
    (tmp_path / "f.yaml").write_text(FILES[name])
    (tmp_path / "now.json").write_text(json.dumps(dump))
    words = ["plan", "-o", output, *(["-f", str(tmp_path / "f.yaml")] if FILES[name] else [])]
    status = await asyncio.to_thread(main, [*words, "--cluster", str(tmp_path / "now.json")])
    of_dump = capsys.readouterr()
    assert await asked(server, tmp_path, *words, "--live") == status == 0
    of_server = capsys.readouterr()
    assert of_server.out == of_dump.out
    assert of_server.err == of_dump.err
    assert "left out: 1 pod bound to no node" in of_server.err


async def test_only_nodes_that_change_are_drawn(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "f.yaml").write_text(POD)
    assert await asked(server, tmp_path, "plan", "--live", "-f", str(tmp_path / "f.yaml")) == 0
    drawn = capsys.readouterr().out
    assert "default/new" in drawn
    assert "node-1" not in drawn
    assert drawn.splitlines()[-1].rstrip() == "1 node left out: nothing changes there"
    assert await asked(server, tmp_path, "plan", "--live") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 nodes left out: nothing changes there"


async def test_cpus_of_claims_are_left_to_their_driver(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    """One that is allocated, one that is not, and one that does not exist."""
    for number, claim in enumerate(("given", "waits", "gone")):
        body = pod_body(
            f"claims-{claim}", "1", node="node-2", bound=f"2026-01-0{number + 3}T00:00:00Z"
        )
        body["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": claim}]
        body["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
        server.put(PODS, body)
    results = [{"request": "r", "driver": "dra.cpu", "pool": "p", "device": "cpudev6"}]
    allocated = {"allocation": {"devices": {"results": results}}}
    for claim, status in (("given", allocated), ("waits", {})):
        metadata = {"name": claim, "namespace": "default"}
        server.put(RESOURCE_CLAIMS, {"metadata": metadata, "status": status})
    items: list[Body] = [
        {"kind": kind, "apiVersion": version} | one
        for (path, _, _), one in server.objects.items()
        for kind, version in [KINDS[path.rpartition("/")[2]]]
    ]
    missing: Body = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1"}
    missing["metadata"] = {"name": "gone", "namespace": "default"}
    missing["status"] = {"allocation": {"devices": {"results": []}}}
    items.append(missing)
    (tmp_path / "now.json").write_text(json.dumps({"kind": "List", "items": items}))
    words = ("plan", "-o", "json")
    assert await asyncio.to_thread(main, [*words, "--cluster", str(tmp_path / "now.json")]) == 0
    of_dump = capsys.readouterr().out
    assert await asked(server, tmp_path, *words, "--live") == 0
    assert capsys.readouterr().out == of_dump
    assert "claims-gone" in of_dump


KINDS = {
    one.plural: (one.kind, one.api_version)
    for one in (
        *(PODS, NODE_REPORTS, NODE_TOPOLOGIES, RESOURCE_CLAIMS),
        *WORKLOAD_RESOURCES.values(),
    )
} | {
    "nodes": ("Node", "v1"),
    "namespaces": ("Namespace", "v1"),
    "cpupolicies": ("CpuPolicy", "numapin.io/v1beta1"),
    "nodeassignments": ("NodeAssignment", "numapin.io/v1beta1"),
}


@pytest.mark.parametrize("resource", ["pods", "nodes", "nodeassignments", "cpupolicies"])
async def test_what_the_operator_knows_must_be_read(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, resource: str
) -> None:
    server.forbidden.add(f"list {resource}")
    assert await asked(server, tmp_path, "plan", "--live") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert f"tester may not list {resource}" in said.err


async def test_reports_that_may_not_be_read_are_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.forbidden.add("list nodereports")
    await asked(server, tmp_path, "plan", "--live")
    assert "not read: nodereports: tester may not list nodereports" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "status", "error"),
    [
        (("--cluster", "now.json"), 2, "--live reads the cluster itself; leave out --cluster"),
        (("--node", "node-3"), 1, "--node node-3: there is no such Node; did you mean node-1"),
    ],
    ids=str,
)
async def test_wrong_usage(
    *,
    server: FakeApiServer,
    tmp_path: Path,
    capsys: Capture,
    flags: tuple[str, ...],
    status: int,
    error: str,
) -> None:
    assert await asked(server, tmp_path, "plan", "--live", *flags) == status
    assert error in capsys.readouterr().err


async def test_faults_of_files_are_said_before_the_cluster_is_read(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "f.yaml").write_text("kind: Pod\n---\nmetadata: {}\n")
    assert await asked(server, tmp_path, "plan", "--live", "-f", str(tmp_path / "f.yaml")) == 1
    assert "document 2: kind: is missing" in capsys.readouterr().err
    assert not server.requests


@pytest.mark.parametrize("items", [[], [{"a": 1}], [{"a": [1, {"b": "c\n"}]}, {}]])
def test_a_list_in_parts_is_the_same_document(items: list[Body]) -> None:
    assert "".join(json_list("nodes", iter(items))) == document({"nodes": items}, "json")
