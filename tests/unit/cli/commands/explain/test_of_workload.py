"""`numapin explain deployment/x`: the pods of a workload, those first that were refused."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from numapin_cli.main import main
from numapin_client.resources import PODS, WORKLOAD_RESOURCES
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import Capture, asked, fill
from support.fakes.worlds.described_cluster import World, cluster
from support.values.forms import all_in_three
from support.values.operator import Body, pod_body

HASH = "7d9c8b"
BOUND = "2026-01-01T00:00:00Z"


def of_web(name: str, cpus: str, node: str = "node-1", bound: str = BOUND) -> Body:
    """A pod of Deployment web."""
    body = pod_body(name, cpus, node=node, bound=bound)
    owner = {"kind": "ReplicaSet", "name": f"web-{HASH}", "controller": True, "uid": "uid-web"}
    body["metadata"] |= {"ownerReferences": [owner], "labels": {"pod-template-hash": HASH}}
    return body


@pytest.fixture(scope="module")
def world() -> World:
    """node-1 has 6 CPUs to give: web-a has 4, web-c is refused, web-d is pending; one of others."""
    return cluster(
        of_web("web-a", "4"),
        of_web("web-c", "4", bound="2026-01-02T00:00:00Z"),
        of_web("web-d", "1", node=""),
        of_web("web-b", "2", node="node-2"),
        pod_body("webcam", "1", node="node-2"),
    )


def workload(kind: str, name: str, **spec: object) -> Body:
    template = {"spec": pod_body("any", "2")["spec"] | {"nodeName": ""}}
    return {
        "apiVersion": WORKLOAD_RESOURCES[kind].api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template} | spec,
    }


@pytest.fixture(params=["one-object", "three-objects"])
async def server(world: World, request: pytest.FixtureRequest) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        items = json.loads(world.dump())["items"]
        is_apart = request.param == "three-objects"
        fill(started, {"items": all_in_three(items) if is_apart else items})
        yield started


async def subjects(
    server: FakeApiServer, folder: Path, capsys: Capture, *words: str
) -> tuple[int, list[str], str]:
    """The exit status, the subject of each explanation, and standard error."""
    status = await asked(server, folder, "explain", *words, "-o", "json")
    said = capsys.readouterr()
    found = json.loads(said.out)["explanations"]
    return status, [one["subject"].removeprefix("pod default/") for one in found], said.err


@pytest.mark.parametrize("name", ["deploy/web", "deployment.apps/web", "deployments/web"])
async def test_refused_pods_are_explained_first(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, name: str
) -> None:
    status, found, error = await subjects(server, tmp_path, capsys, name)
    assert (status, found) == (3, ["web-c", "web-d", "web-a"])
    assert error == (
        "Deployment default/web: 4 pods, 1 refused, 1 bound to no node; explained:"
        " default/web-c, default/web-d, default/web-a (--pods explains more)\n"
    )


async def test_as_many_pods_are_explained_as_are_asked_for(
    server: FakeApiServer, world: World, tmp_path: Path, capsys: Capture
) -> None:
    words = ("deployment", "web", "--pods", "9", "--nodes", "1")
    status, found, error = await subjects(server, tmp_path, capsys, *words)
    assert (status, found) == (3, ["web-c", "web-d", "web-a", "web-b"])
    assert error == "Deployment default/web: 4 pods, 1 refused, 1 bound to no node\n"
    (tmp_path / "now.json").write_text(world.dump())
    assert main(["explain", *words, "-o", "json", "--cluster", str(tmp_path / "now.json")]) == 3
    said = capsys.readouterr()
    of_files = [one["subject"] for one in json.loads(said.out)["explanations"]]
    assert of_files == [f"pod default/{one}" for one in found]
    assert said.err == error


async def test_nodes_are_read_once_for_all_pods(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    await subjects(server, tmp_path, capsys, "deploy/web", "--pods", "9")
    lists = [one for one in server.requests if one.path.endswith("/nodeassignments")]
    assert len(lists) == 1


@pytest.mark.parametrize(
    ("kind", "spec", "pod"),
    [
        ("StatefulSet", {"replicas": 3}, "new-0"),
        ("DaemonSet", {}, "new-"),
        ("Deployment", {}, "new-"),
        ("Job", {}, "new-"),
    ],
)
async def test_one_without_pods_is_explained_as_its_controller_creates_it(
    *,
    server: FakeApiServer,
    tmp_path: Path,
    capsys: Capture,
    kind: str,
    spec: Body,
    pod: str,
) -> None:
    server.put(WORKLOAD_RESOURCES[kind], workload(kind, "new", **spec))
    _, found, error = await subjects(server, tmp_path, capsys, f"{kind}/new")
    assert found[0].startswith(pod)
    assert error.startswith(f"{kind} default/new has no pods yet; explained: default/{pod}")


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("deploy/old", "Deployment default/old has no pods: it has 0 replicas"),
        ("deploy/odl", "there is no deployment odl in namespace default; did you mean old?"),
        ("sts/old", "there is no statefulset old in namespace default; there is none at all"),
        ("deplyo/web", "in namespace deplyo, which has no pods; did you mean deploy"),
    ],
)
async def test_what_is_not_there_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, target: str, error: str
) -> None:
    server.put(WORKLOAD_RESOURCES["Deployment"], workload("Deployment", "old", replicas=0))
    assert await asked(server, tmp_path, "explain", target) == 1
    assert error in capsys.readouterr().err


async def test_a_dump_without_its_pods_names_controllers_like_it(
    world: World, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "now.json").write_text(world.dump())
    assert main(["explain", "deploy/wep", "--cluster", str(tmp_path / "now.json")]) == 1
    assert "no pod of deployment wep in namespace default; did you mean web?" in (
        capsys.readouterr().err
    )


async def test_who_may_not_read_assignments_is_told_what_the_pods_say(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    for kind in ("nodes", "nodeassignments"):
        server.forbidden.update({f"get {kind}", f"list {kind}"})
    body = of_web("web-e", "4")
    body["metadata"]["annotations"] = {"numapin.io/refused": "NotEnoughCPUs: wanted 4 CPUs"}
    server.put(PODS, body)
    status, found, error = await subjects(server, tmp_path, capsys, "deploy/web", "--pods", "1")
    assert (status, found) == (3, ["web-e"])
    assert "5 pods, 1 refused" in error
