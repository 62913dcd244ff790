"""`numapin report`: complete, without secrets, whole or not at all, and readable by the others."""

import asyncio
import io
import json
import os
import stat
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_cli.bundle.own_pods import MASK, masked, masked_arguments
from numapin_cli.bundle.reduced import reduced
from numapin_cli.main import main
from numapin_client.resources import EVENTS, NODES, PODS
from numapin_operator.observe.pods.parser import parse_stored_pod
from numapin_operator.observe.records import NodeView
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill
from support.fakes.worlds.described_cluster import World, cluster, node_body
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]
CANARY = "s3cr3t-canary"


@pytest.fixture(scope="module")
def world() -> World:
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("c", "1", node="node-2"),
    )


def leaking(body: Body) -> Body:
    """A pod as a tenant writes one, with secrets in every place that has some."""
    found: Body = json.loads(json.dumps(body))
    found["metadata"]["annotations"] = {"note": CANARY}
    found["metadata"]["managedFields"] = [{"manager": CANARY}]
    found["spec"] |= {
        "volumes": [{"name": "v", "hostPath": {"path": CANARY}}],
        "imagePullSecrets": [{"name": CANARY}],
        "serviceAccountName": CANARY,
        "hostAliases": [{"ip": CANARY}],
    }
    for container in found["spec"]["containers"]:
        container |= {
            "env": [{"name": "TOKEN", "value": CANARY}],
            "envFrom": [{"secretRef": {"name": CANARY}}],
            "command": [CANARY],
            "args": [f"--password={CANARY}"],
            "image": f"registry/{CANARY}",
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "a", "value": CANARY}]}},
        }
    found["status"] = {
        "containerStatuses": [
            {
                "name": "main",
                "image": CANARY,
                "restartCount": 2,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": CANARY}},
            }
        ],
        "podIP": CANARY,
        "conditions": [{"type": "Ready", "status": "False", "message": CANARY}],
        "message": CANARY,
    }
    return found


def own(name: str, component: str, node: str, restarts: int = 0) -> Body:
    body = pod_body(name, "100m", node=node, namespace="numapin-system")
    labels = {"app.kubernetes.io/name": "numapin", "app.kubernetes.io/component": component}
    body["metadata"]["labels"] = labels
    container = body["spec"]["containers"][0]
    container["args"] = ["--verbose", f"--otlp-headers=authorization={CANARY}"]
    container["env"] = [{"name": "X", "value": CANARY}]
    body["status"] = {"containerStatuses": [{"name": "main", "restartCount": restarts}]}
    return body


@pytest.fixture
async def server(world: World) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        dump = json.loads(world.dump())
        dump["items"] = [leaking(one) if one["kind"] == "Pod" else one for one in dump["items"]]
        fill(started, dump)
        for body in (
            own("numapin-operator-1", "operator", "node-2"),
            own("numapin-enforcer-1", "enforcer", "node-1", restarts=1),
            own("numapin-enforcer-2", "enforcer", "node-2"),
        ):
            started.put(PODS, body)
            line = f"started with Authorization: Bearer {CANARY}-abcdef\n"
            started.logs[body["metadata"]["name"]] = line.encode()
        for number, controller in enumerate(("numapin.io/operator", "kubelet")):
            event = {
                "metadata": {"name": f"e{number}", "namespace": "default"},
                "reportingController": controller,
                "reason": f"R{number}",
                "note": "wanted 4 CPUs",
                "regarding": {"kind": "Pod", "namespace": "default", "name": "b"},
            }
            started.put(EVENTS, event)
        yield started


@pytest.fixture
def no_node(tmp_path: Path) -> Path:
    """A machine without cgroups of pods."""
    folder = tmp_path / "machine"
    (folder / "sys").mkdir(parents=True)
    return folder


async def reported(
    server: FakeApiServer, folder: Path, *flags: str, status: int = 3
) -> dict[str, str]:
    """The files of a report; `folder` has a machine that is no node by default."""
    file = folder / "report.tar.gz"
    machine = str(folder / "machine")
    arguments = ("report", "-o", str(file), "--root", machine, *flags)
    assert await asked(server, folder, *arguments) == status
    return contents(file.read_bytes())


def contents(archive: bytes) -> dict[str, str]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for member in opened:
            stream = opened.extractfile(member)
            assert stream is not None
            found[member.name.partition("/")[2]] = stream.read().decode()
    return found


async def test_a_report_has_what_it_says_and_no_secret(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    files = await reported(server, tmp_path)
    assert files.keys() == {
        "README.txt",
        "server-version.json",
        "objects.json",
        "events.json",
        "numapin-pods.json",
        "versions.json",
        "logs/numapin-operator-1_main.log",
        "logs/numapin-enforcer-1_main.log",
        "logs/numapin-enforcer-1_main.previous.log",
        "logs/numapin-enforcer-2_main.log",
    }
    for name, text in files.items():
        assert CANARY not in text, name
    assert [one["reason"] for one in json.loads(files["events.json"])] == ["R0"]
    (first, *_) = json.loads(files["numapin-pods.json"])
    assert first["spec"]["containers"][0]["args"] == ["--verbose", f"--otlp-headers={MASK}"]
    assert "Left out on purpose:" in files["README.txt"]
    assert "Everything was collected." not in files["README.txt"]
    assert "this machine is no node" in files["README.txt"]
    error = capsys.readouterr().err
    assert "not collected: node: this machine is no node" in error
    assert "run numapin report on the node" in error
    assert "report.tar.gz: 10 files" in error
    assert stat.S_IMODE((tmp_path / "report.tar.gz").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "-o", "json"],
        ["get", "-o", "json"],
        ["get", "node-1"],
        ["explain", "b", "-o", "json"],
        ["explain", "node/node-1"],
        ["explain", "policy/web"],
    ],
    ids=" ".join,
)
async def test_a_report_answers_as_the_dump_does(  # noqa: PLR0917
    server: FakeApiServer,
    world: World,
    tmp_path: Path,
    no_node: Path,
    capsys: Capture,
    words: list[str],
) -> None:
    for name in ("numapin-operator-1", "numapin-enforcer-1", "numapin-enforcer-2"):
        server.remove(PODS, name, "numapin-system")
    await reported(server, tmp_path)
    capsys.readouterr()
    (tmp_path / "now.json").write_text(world.dump())
    of_dump = await asyncio.to_thread(main, [*words, "--cluster", str(tmp_path / "now.json")])
    dumped = capsys.readouterr().out
    report = str(tmp_path / "report.tar.gz")
    assert await asyncio.to_thread(main, [*words, "--cluster", report]) == of_dump
    assert capsys.readouterr().out == dumped


async def test_what_may_not_be_read_is_said_in_the_report_and_the_rest_is_there(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    server.forbidden.update({"get pods/log", "list nodes", "list events"})
    files = await reported(server, tmp_path)
    error = capsys.readouterr().err
    for what in ("get pods/log", "list nodes", "list events.events.k8s.io"):
        assert f"tester may not {what}" in error
        assert f"tester may not {what}" in files["README.txt"]
    kinds = {one["kind"] for one in json.loads(files["objects.json"])["items"]}
    assert kinds == {"Namespace", "CpuPolicy", "NodeAssignment", "Pod"}
    assert not [name for name in files if name.startswith("logs/")]


async def test_a_server_without_the_crds_is_named_in_the_report(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    server.unknown.update({"cpupolicies", "nodeassignments"})
    files = await reported(server, tmp_path)
    for text in (capsys.readouterr().err, files["README.txt"]):
        assert "this API server does not know numapin.io; install numapin there" in text
    assert json.loads(files["objects.json"])["items"]


async def test_one_node_alone(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    files = await reported(server, tmp_path, "--node", "node-1")
    items = json.loads(files["objects.json"])["items"]
    assert {one["spec"]["nodeName"] for one in items if one["kind"] == "Pod"} == {"node-1"}
    named = {one["metadata"]["name"] for one in items if one["kind"] == "NodeAssignment"}
    assert named == {"node-1"}
    logs = {name for name in files if name.startswith("logs/")}
    assert "logs/numapin-enforcer-2_main.log" not in logs
    assert {"logs/numapin-operator-1_main.log", "logs/numapin-enforcer-1_main.log"} <= logs
    flags = ("report", "-o", str(tmp_path / "x.gz"), "--root", str(no_node), "--node", "node-9")
    assert await asked(server, tmp_path, *flags) == 1
    assert "there is no node node-9; did you mean node-1 or node-2?" in capsys.readouterr().err
    assert not (tmp_path / "x.gz").exists()


async def test_logs_of_nodes_that_are_not_ready_come_first(
    server: FakeApiServer, tmp_path: Path, no_node: Path
) -> None:
    path = "/apis/numapin.io/v1alpha1/nodeassignments"
    server.objects[path, "", "node-2"]["status"]["conditions"] = []
    files = await reported(server, tmp_path, "--log-nodes", "1")
    assert "logs/numapin-enforcer-2_main.log" in files
    assert "logs/numapin-enforcer-1_main.log" not in files
    (tmp_path / "report.tar.gz").unlink()
    files = await reported(server, tmp_path, "--log-lines", "0")
    assert not [name for name in files if name.startswith("logs/")]


async def test_a_file_is_never_overwritten_and_never_half_written(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    file = tmp_path / "report.tar.gz"
    file.write_text("mine")
    flags = ("report", "-o", str(file), "--root", str(no_node))
    assert await asked(server, tmp_path, *flags) == 1
    assert "exists already; name another file with -o" in capsys.readouterr().err
    assert file.read_text() == "mine"
    missing = str(tmp_path / "none" / "report.tar.gz")
    assert await asked(server, tmp_path, "report", "-o", missing, "--root", str(no_node)) == 1
    assert "No such file or directory; name another file" in capsys.readouterr().err
    assert [one for one in os.listdir(tmp_path) if one.startswith(".")] == []  # noqa: PTH208


def test_without_a_cluster_and_a_node_there_is_nothing_to_report(
    tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    flags = ["--kubeconfig", str(tmp_path / "none"), "--root", str(no_node)]
    assert main(["report", "-o", str(tmp_path / "r.tar.gz"), *flags]) == 1
    assert "this machine is no node: nothing can be reported" in capsys.readouterr().err
    assert not (tmp_path / "r.tar.gz").exists()


@pytest.fixture
def a_node(tmp_path: Path) -> list[str]:
    """The flags for a node with the hardware of the machine that runs the test."""
    machine = tmp_path / "machine"
    machine.mkdir()
    (machine / "sys").mkdir()
    for one in Path("/sys").iterdir():
        if one.name != "fs":
            (machine / "sys" / one.name).symlink_to(one)
    (machine / "proc").symlink_to("/proc")
    tree = machine / "sys" / "fs"
    pods = tree / "cgroup" / "kubepods"
    pods.mkdir(parents=True)
    for folder in (pods.parent, pods):
        for each, text in CGROUP.items():
            (folder / each).write_text(text)
    kubelet = tmp_path / "kubelet"
    kubelet.mkdir()
    (kubelet / "cpu_manager_state").write_text('{"policyName":"none"}')
    return ["--root", str(machine), "--kubelet-root-dir", str(kubelet)]


async def test_a_report_of_cluster_and_node_is_complete(
    server: FakeApiServer, tmp_path: Path, a_node: list[str], capsys: Capture
) -> None:
    files = await reported(server, tmp_path, *a_node, status=0)
    assert "Everything was collected." in files["README.txt"]
    assert "node/cgroups.txt" in files
    assert "not collected" not in capsys.readouterr().err


def test_a_node_without_a_cluster_is_reported(
    tmp_path: Path, a_node: list[str], capsys: Capture
) -> None:
    file, flags = tmp_path / "r.tar.gz", a_node
    status = main(["report", "-o", str(file), "--kubeconfig", str(tmp_path / "none"), *flags])
    assert status == 3, capsys.readouterr().err
    files = contents(file.read_bytes())
    assert files["node/cgroups.txt"].startswith("kubepods  cpus=0-3 mems=0 effective=0-3")
    assert json.loads(files["node/topology.json"])["cpus"]
    assert json.loads(files["node/node.json"])["cgroupVersion"] == 2
    assert files["node/cpu_manager_state"] == '{"policyName":"none"}'
    assert main(["plan", "--cluster", str(file)]) == 1
    assert "there is no objects.json in it" in capsys.readouterr().err


CGROUP = {
    "cgroup.controllers": "cpuset cpu memory",
    "cpuset.cpus": "0-3",
    "cpuset.mems": "0",
    "cpuset.cpus.effective": "0-3",
    "cpuset.mems.effective": "0",
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x1f\x8bgarbage", "is no report, or a damaged one"),
        (b"\x1f\x8b", "is no report, or a damaged one"),
    ],
)
def test_a_damaged_report_is_named(
    tmp_path: Path, capsys: Capture, content: bytes, message: str
) -> None:
    (tmp_path / "r.tar.gz").write_bytes(content)
    assert main(["plan", "--cluster", str(tmp_path / "r.tar.gz")]) == 1
    assert message in capsys.readouterr().err


async def test_a_report_cut_in_the_middle_is_named(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    await reported(server, tmp_path)
    whole = (tmp_path / "report.tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    assert await asyncio.to_thread(main, ["get", "--cluster", str(tmp_path / "cut.tar.gz")]) == 1
    assert "is no report, or a damaged one" in capsys.readouterr().err


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 9) | st.just(CANARY),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["resources", "requests", "cpu", "env", "state", "terminated", "name"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    )
)
def test_no_form_of_a_pod_is_too_odd_to_be_reduced(odd: Any) -> None:
    for place in ("containers", "resources", "initContainers"):
        body = pod_body("p", "2")
        body["spec"][place] = odd
        found = reduced("Pod", body)
        assert parse_stored_pod(found).name == "p"
    status = pod_body("p", "2") | {"status": {"containerStatuses": odd, "conditions": odd}}
    assert reduced("Pod", status)["metadata"]["name"] == "p"


@pytest.mark.parametrize("cpu", ["2", "500m"])
def test_the_operator_sees_no_difference(cpu: str) -> None:
    body = leaking(pod_body("p", cpu, labels={"a": "b"}, owner=("ReplicaSet", "u"), priority=7))
    body["spec"] |= {"runtimeClassName": "kata", "overhead": {"cpu": "1"}}
    body["spec"]["resources"] = {"requests": {"cpu": "3"}}
    body["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "uid-static"
    assert parse_stored_pod(reduced("Pod", body)) == parse_stored_pod(body)
    node = node_body("n", "7500m")
    node["status"]["nodeInfo"] = {"operatingSystem": "linux", "machineID": CANARY}
    node["status"]["addresses"] = [{"address": CANARY}]
    assert NodeView.decode(reduced("Node", node)) == NodeView.decode(node)
    assert CANARY not in json.dumps([reduced("Node", node), reduced("Pod", body)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdefghij.k", f"Authorization: Bearer {MASK}"),
        ("https://user:pass@host/x", f"https://{MASK}@host/x"),
        ('{"token":"abc","x":1}', f'{{"token":"{MASK}","x":1}}'),
        ("eyJhbGciOiJSUzI1.eyJpc3MiOiJr.sig-_x", MASK),
        ("wanted 4 CPUs, 2 free: 6-7", "wanted 4 CPUs, 2 free: 6-7"),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


def test_values_of_flags_that_may_be_credentials_are_masked() -> None:
    given = ["--token", "abc", "--tls-key-file=/x", "--v=2", "--health", "x", "--auth-token=a=b"]
    expected = ["--token", MASK, f"--tls-key-file={MASK}", "--v=2", "--health", "x"]
    assert masked_arguments(given) == [*expected, f"--auth-token={MASK}"]


async def test_a_report_goes_to_standard_output(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    server.put(NODES, node_body("node-7", "8"))
    assert await asked(server, tmp_path, "report", "-o", "-", "--root", str(no_node)) == 3
    files = contents(capsysbinary.readouterr().out)
    assert '"node-7"' in files["objects.json"]
