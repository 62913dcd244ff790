"""`numapin report`: complete, without secrets, whole or not at all, and readable by the others."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest

from numapin_cli.bundle.own_pods import MASK
from numapin_cli.main import main
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODES, PODS
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, contents, reported
from support.fakes.worlds.described_cluster import World, node_body
from support.values.leaking import CANARY

Capture = pytest.CaptureFixture[str]


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
    server: FakeApiServer, is_apart: bool, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    server.forbidden.update({"get pods/log", "list nodes", "list events"})
    files = await reported(server, tmp_path)
    error = capsys.readouterr().err
    for what in ("get pods/log", "list nodes", "list events.events.k8s.io"):
        assert f"tester may not {what}" in error
        assert f"tester may not {what}" in files["README.txt"]
    kinds = {one["kind"] for one in json.loads(files["objects.json"])["items"]}
    parts = {"NodeReport", "NodeTopology"} if is_apart else set()
    assert kinds == {"Namespace", "CpuPolicy", "NodeAssignment", "Pod"} | parts
    assert not [name for name in files if name.startswith("logs/")]


async def test_a_server_without_the_crds_is_named_in_the_report(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    server.unknown.update({"cpupolicies", "nodeassignments"})
    files = await reported(server, tmp_path)
    for text in (capsys.readouterr().err, files["README.txt"]):
        assert "this API server does not serve numapin.io/v1beta1" in text
    assert json.loads(files["objects.json"])["items"]


async def test_kinds_that_older_crds_do_not_have_are_no_problem(
    server: FakeApiServer, tmp_path: Path, no_node: Path
) -> None:
    server.unknown.update({"nodereports", "nodetopologies"})
    files = await reported(server, tmp_path)
    assert "nodereports" not in files["README.txt"]
    server.unknown.clear()
    server.forbidden.add("list nodereports")
    (tmp_path / "report.tar.gz").unlink()
    files = await reported(server, tmp_path)
    assert "nodereports: tester may not list nodereports" in files["README.txt"]


async def test_one_node_alone(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsys: Capture
) -> None:
    files = await reported(server, tmp_path, "--node", "node-1")
    items = json.loads(files["objects.json"])["items"]
    assert {one["spec"]["nodeName"] for one in items if one["kind"] == "Pod"} == {"node-1"}
    of_nodes = {"NodeAssignment", "NodeReport", "NodeTopology", "Node"}
    assert {one["metadata"]["name"] for one in items if one["kind"] in of_nodes} == {"node-1"}
    logs = {name for name in files if name.startswith("logs/")}
    assert "logs/numapin-enforcer-2_main.log" not in logs
    assert {"logs/numapin-operator-1_main.log", "logs/numapin-enforcer-1_main.log"} <= logs
    flags = ("report", "-o", str(tmp_path / "x.gz"), "--root", str(no_node), "--node", "node-9")
    assert await asked(server, tmp_path, *flags) == 1
    assert "there is no node node-9; did you mean node-1 or node-2?" in capsys.readouterr().err
    assert not (tmp_path / "x.gz").exists()


async def test_logs_of_nodes_that_are_not_ready_come_first(
    server: FakeApiServer, is_apart: bool, tmp_path: Path, no_node: Path
) -> None:
    path = (NODE_REPORTS if is_apart else NODE_ASSIGNMENTS).collection_path()
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


async def test_a_report_goes_to_standard_output(
    server: FakeApiServer, tmp_path: Path, no_node: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    server.put(NODES, node_body("node-7", "8"))
    assert await asked(server, tmp_path, "report", "-o", "-", "--root", str(no_node)) == 3
    files = contents(capsysbinary.readouterr().out)
    assert '"node-7"' in files["objects.json"]
