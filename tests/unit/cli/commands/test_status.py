"""`numapin status`: whether numapin is well, what needs a person, and waiting for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from numapin_cli.commands import status
from numapin_client.resources import CPU_POLICIES, NODE_ASSIGNMENTS, NODES, PODS, Resource
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill
from support.fakes.worlds.described_cluster import cluster, node_body
from support.real.waiting import eventually
from support.values.forms import all_in_three
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]


def own_pod(component: str, node: str, tag: str = "0.1.0", ready: str = "True") -> Body:
    labels = {"app.kubernetes.io/name": "numapin", "app.kubernetes.io/component": component}
    name = f"numapin-{component}-{node}"
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if ready == "False" else {"running": {}}
    return {
        "metadata": {"name": name, "namespace": "numapin-system", "labels": labels},
        "spec": {"nodeName": node, "containers": [{"image": f"here:5000/numapin-x:{tag}"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"state": state}],
        },
    }


@pytest.fixture(scope="module", params=["one-object", "three-objects"])
def dump(request: pytest.FixtureRequest) -> Body:
    """Two nodes with a policy in force and a refused pod, as v1alpha1 and as v1beta1 have it."""
    found: Body = json.loads(cluster(pod_body("a", "2"), pod_body("c", "7")).dump())
    for one in found["items"]:
        if one["kind"] == "CpuPolicy":
            one["status"] = {
                "conditions": [condition("Ready", "True", "InForce")],
                "observedGeneration": one["metadata"]["generation"],
                "nodesSelected": 2,
                "nodesInForce": 2,
                "refused": 1,
            }
    if request.param == "three-objects":
        found["items"] = all_in_three(found["items"])
    return found


def condition(kind: str, value: str, reason: str, message: str = "") -> Body:
    said = {"reason": reason, "message": message, "observedGeneration": 1}
    return {"type": kind, "status": value, "lastTransitionTime": "2026-01-01T00:00:00Z"} | said


@pytest.fixture
async def server(dump: Body) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, dump)
        started.put(PODS, own_pod("operator", "node-1"))
        for node in ("node-1", "node-2"):
            started.put(PODS, own_pod("enforcer", node))
            started.put(PODS, own_pod("standby", node))
        yield started


def reported(server: FakeApiServer, node: str) -> Body:
    """The object in which the enforcer of a node reports, to be changed."""
    named = ((key[0], one) for key, one in server.objects.items() if key[2] == node)
    found = {path.rpartition("/")[2]: one for path, one in named}
    return found.get("nodereports") or found["nodeassignments"]


def stall(server: FakeApiServer, node: str) -> None:
    body = reported(server, node)
    body["status"]["conditions"] = [
        condition("Ready", "False", "CgroupsReadOnly", "no"),
        condition("Stalled", "True", "CgroupsReadOnly", "no"),
    ]


WELL = """\
All is Ready.

Versions
  client    0.1.0
  API       v1beta1, v1alpha1 (Kubernetes v1.36.3)
  operator  0.1.0; 1 of 1 ready
  enforcer  0.1.0; 2 of 2 ready
  standby   0.1.0; 2 of 2 ready

Policies
  POLICY  MODE    NODES  IN FORCE  STALLED  NOT SERVED  REFUSED
  web     Static  2      2         0        0           1        Ready

Nodes
  2  Ready

Needs attention
  1. 1 pod refused on 1 node: node-1
     -> numapin get --sort refused
"""


async def test_one_screen(server: FakeApiServer, tmp_path: Path, capsys: Capture) -> None:
    assert await asked(server, tmp_path, "status") == 0
    assert capsys.readouterr().out == WELL


async def test_what_needs_a_person_is_named_with_where_to_look(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    stall(server, "node-2")
    server.put(PODS, own_pod("enforcer", "node-2", "0.0.9", ready="False"))
    server.remove(PODS, "numapin-operator-node-1", "numapin-system")
    assert await asked(server, tmp_path, "status", "-o", "yaml") == 3
    found = yaml.safe_load(capsys.readouterr().out)
    assert found["ready"] is False
    assert found["nodes"] == {"total": 2, "states": {"CgroupsReadOnly": 1, "Ready": 1}}
    assert [one["versions"] for one in found["programs"]] == [
        {},
        {"0.1.0": 1, "0.0.9": 1},
        {"0.1.0": 2},
    ]
    concerns = [(one["what"].partition(";")[0], one["blocks"]) for one in found["attention"]]
    assert concerns == [
        ("there is no pod of the operator in numapin-system", True),
        (
            "1 pod of the enforcer not ready: numapin-enforcer-node-2 (CrashLoopBackOff)",
            True,
        ),
        ("1 node CgroupsReadOnly: node-2", True),
        ("2 versions of numapin run: 0.0.9, 0.1.0", False),
        ("1 pod refused on 1 node: node-1", False),
    ]
    assert found["attention"][2]["look"] == "numapin explain node/node-2"
    assert found["attention"][3]["what"].endswith("; enforcer 0.0.9 on node-2")
    assert found["programs"][1]["otherVersions"] == {"0.0.9": ["node-2"]}


async def test_a_policy_that_is_not_in_force_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    place = next(key for key in server.objects if key[0].endswith("cpupolicies"))
    server.objects[place]["metadata"]["generation"] += 1
    assert await asked(server, tmp_path, "status") == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert "policy web waits for the operator: the operator has not looked at generation" in shown
    assert "-> numapin explain policy/web" in shown


async def test_a_node_that_is_away_is_said_and_not_waited_for(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    stall(server, "node-2")
    server.put(PODS, own_pod("enforcer", "node-2", ready="False"))
    conditions = [{"type": "Ready", "status": "Unknown"}]
    node = node_body("node-2", "5")
    server.put(NODES, node | {"status": node["status"] | {"conditions": conditions}})
    assert await asked(server, tmp_path, "status", "--wait", "--timeout", "1s") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 node cannot be served: node-2 (NodeNotReady) -> kubectl get nodes" in shown
    assert "Nodes 1 NodeNotReady 1 Ready" in shown


async def test_it_waits_until_all_is_ready(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "_LEAST_PAUSE_SECONDS", 0.01)
    before = reported(server, "node-2")["status"]["conditions"]
    stall(server, "node-2")
    waiting = asyncio.create_task(asked(server, tmp_path, "status", "--wait", "--timeout", "5m"))
    await eventually(lambda: sum(one.path == "/version" for one in server.requests) > 2)
    assert not waiting.done()
    reported(server, "node-2")["status"]["conditions"] = before
    assert await waiting == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [line for line in said.err.splitlines() if "waiting: " in line]
    assert said.err.startswith("waiting: 1 of 2 nodes Ready; 1 node CgroupsReadOnly: node-2")
    assert said.out.startswith("All is Ready.")


async def test_waiting_ends_with_its_time(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    stall(server, "node-1")
    assert await asked(server, tmp_path, "status", "--wait", "--timeout", "0s") == 3
    assert capsys.readouterr().out.startswith("Something is not Ready.")


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--timeout", "5m"), "add --wait"),
        (("--wait", "--timeout", "5"), "'5' is no duration; write 90s, 10m or 1h30m"),
    ],
    ids=str,
)
async def test_wrong_usage(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, flags: tuple[str, ...], error: str
) -> None:
    try:
        ended = await asked(server, tmp_path, "status", *flags)
    except SystemExit as exit_status:
        ended = int(str(exit_status.code))
    assert ended == 2
    assert error in capsys.readouterr().err


async def test_what_may_not_be_read_is_left_out_and_said(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.forbidden |= {"list pods", "list nodes"}
    assert await asked(server, tmp_path, "status") == 0
    said = capsys.readouterr()
    assert "programs  not known: their pods may not be read" in said.out
    assert "tester may not list pods in namespace numapin-system" in said.err
    assert "tester may not list nodes in the whole cluster" in said.err


@pytest.mark.parametrize("resource", [CPU_POLICIES, NODE_ASSIGNMENTS], ids=lambda one: one.plural)
async def test_without_the_objects_themselves_nothing_is_said(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, resource: Resource
) -> None:
    server.forbidden.add(f"list {resource.plural}")
    assert await asked(server, tmp_path, "status") == 1
    assert f"may not list {resource.plural}" in capsys.readouterr().err


async def test_a_cluster_without_numapin_says_what_to_install(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.unknown.add(CPU_POLICIES.plural)
    assert await asked(server, tmp_path, "status") == 1
    assert "does not serve numapin.io/v1beta1" in capsys.readouterr().err


async def test_a_cluster_without_a_policy_is_well(tmp_path: Path, capsys: Capture) -> None:
    async with FakeApiServer() as server:
        server.put(NODES, node_body("node-1", "8"))
        assert await asked(server, tmp_path, "status", "-n", "elsewhere") == 3
    shown = capsys.readouterr().out
    assert "There is no policy: numapin does nothing." in shown
    assert "there is no pod of the operator in elsewhere" in shown
    assert "1  no policy" in shown
