"""`numapin get`: what NodeAssignments say, for people and scripts, and what a person gets wrong."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_cli.main import main
from numapin_cli.near_names import did_you_mean
from numapin_client.resources import NODE_ASSIGNMENTS, NODE_REPORTS, NODES, Resource
from support.fakes.apiserver import FakeApiServer
from support.fakes.worlds.asked_cluster import asked, fill, kubeconfig
from support.fakes.worlds.described_cluster import cluster, node_body
from support.values.forms import all_in_three
from support.values.operator import Body, pod_body

Capture = pytest.CaptureFixture[str]


def make_dump() -> Body:
    """Two nodes; node-1 has a pod with CPUs that the kernel has, one without, and a refused one."""
    world = cluster(pod_body("a", "2"), pod_body("b", "1", namespace="fast"), pod_body("c", "7"))
    found: Body = json.loads(world.dump())
    (assignment,) = (
        one
        for one in found["items"]
        if one["kind"] == "NodeAssignment" and one["metadata"]["name"] == "node-1"
    )
    assignment["status"]["containers"] = [
        {"podUID": "uid-a", "container": "main", "cpus": "2-3", "exclusive": True},
        {"podUID": "uid-b", "container": "main", "cpus": "0-7", "exclusive": False},
    ]
    return found


@pytest.fixture(scope="module", params=["one-object", "three-objects"])
def dump(request: pytest.FixtureRequest) -> Body:
    """The same as v1alpha1 and as v1beta1 have it."""
    made = make_dump()
    if request.param == "three-objects":
        made["items"] = all_in_three(made["items"])
    return made


@pytest.fixture
async def server(dump: Body) -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        fill(started, dump)
        started.put(NODES, node_body("node-3", "8"))
        yield started


def words(text: str) -> str:
    return " ".join(text.split())


async def test_a_line_for_each_node(server: FakeApiServer, tmp_path: Path, capsys: Capture) -> None:
    assert await asked(server, tmp_path, "get") == 0
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert head.split() == ["NODE", "POLICY", "MODE", "EXCLUSIVE", "SHARED", "REFUSED", "READY"]
    assert first.split() == ["node-1", "web", "Static", "3", "0-1,5-7", "1", "True"]
    assert second.split() == ["node-2", "web", "Static", "0", "0-7", "0", "True"]
    assert third.split() == ["node-3", "-", "-", "0", "-", "0", "-"]


async def test_a_machine_with_who_has_what(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "get", "node-1") == 0
    drawn = capsys.readouterr().out
    assert "A default/a main 2-3 yes" in words(drawn)
    assert "B fast/b main 4 has 0-7" in words(drawn)
    assert "default/c main NotEnoughCPUs wanted 7 CPUs," in words(drawn)
    assert "[0-1]rr [2-3]AA [4-5]B. [6-7].." in words(drawn)
    assert "Left on NUMA nodes, of what is not reserved 0 3 of 6 CPUs" in words(drawn)
    assert max(map(len, drawn.splitlines())) <= 80
    assert "\x1b" not in drawn


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_documents_tell_the_spec_and_the_kernel_apart(
    server: FakeApiServer,
    tmp_path: Path,
    capsys: Capture,
    output: str,
    load: Callable[[str], Any],
) -> None:
    assert await asked(server, tmp_path, "get", "node-1", "-o", output) == 0
    (node,) = load(capsys.readouterr().out)["nodes"]
    assert (node["node"], node["policy"], node["ready"]) == ("node-1", "web", True)
    cpus = {"capacity": 8, "allocatable": 6, "available": 3}
    assert node["numaNodes"] == [{"numaNode": 0, "resources": {"cpu": cpus}}]
    first, second = node["containers"]
    assert (first["cpus"], first["inForce"], first["kernel"]["cpus"]) == ("2-3", True, "2-3")
    assert (second["cpus"], second["inForce"], second["kernel"]["cpus"]) == ("4", False, "0-7")
    assert [one["reason"] for one in node["refused"]] == ["NotEnoughCPUs"]


async def test_wide_has_more_columns(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "get", "-o", "wide") == 0
    assert "RESERVED DRIFT MESSAGE" in words(capsys.readouterr().out)
    assert await asked(server, tmp_path, "get", "node-1", "-o", "wide") == 0
    assert "uid-a" in capsys.readouterr().out


async def test_a_dump_says_the_same_as_the_server(
    server: FakeApiServer, dump: Body, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "now.json").write_text(json.dumps(dump))
    assert main(["get", "node-1", "--cluster", str(tmp_path / "now.json")]) == 0
    of_file = capsys.readouterr().out
    assert await asked(server, tmp_path, "get", "node-1") == 0
    assert capsys.readouterr().out == of_file


@pytest.mark.parametrize(
    ("forbidden", "unknown", "arguments", "message"),
    [
        ("", "", ["node-11"], "there is no node node-11; did you mean node-1, node-2 or node-3?"),
        ("", "", ["zzz"], "there is no node zzz; there is node-1, node-2, node-3"),
        (
            "list nodeassignments",
            "",
            [],
            "tester may not list nodeassignments.numapin.io in the whole cluster; ask for a role"
            " that allows it (kubectl auth can-i list nodeassignments.numapin.io",
        ),
        ("get nodeassignments", "", ["node-1"], "tester may not get nodeassignments.numapin.io"),
        ("", "nodeassignments", [], "does not serve numapin.io/v1beta1; beside an older"),
        ("", "nodeassignments", ["node-1"], "does not serve numapin.io/v1beta1; beside an older"),
    ],
    ids=["near", "far", "may-not-list", "may-not-get", "no-crd", "no-crd-for-one"],
)
async def test_what_cannot_be_shown_is_named(  # noqa: PLR0917
    server: FakeApiServer,
    tmp_path: Path,
    capsys: Capture,
    forbidden: str,
    unknown: str,
    arguments: list[str],
    message: str,
) -> None:
    server.forbidden.add(forbidden)
    server.unknown.add(unknown)
    assert await asked(server, tmp_path, "get", *arguments) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


async def test_nodes_that_may_not_be_listed_are_not_needed(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.forbidden.add("list nodes")
    assert await asked(server, tmp_path, "get") == 0
    assert "node-3" not in capsys.readouterr().out


@pytest.mark.parametrize("right", ["list pods", "get nodes", "list cpupolicies"])
async def test_what_is_left_needs_more_rights_than_the_rest(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, right: str
) -> None:
    server.forbidden.add(right)
    assert await asked(server, tmp_path, "get", "node-1") == 0
    captured = capsys.readouterr()
    assert "A default/a main 2-3 yes" in words(captured.out)
    assert "Left on NUMA nodes" not in captured.out
    assert f"what NUMA nodes have left is not known: tester may not {right}" in captured.err


@pytest.mark.parametrize("command", [["get"], ["explain", "pod/x"]], ids=["get", "explain"])
def test_no_cluster_names_what_was_looked_for(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(command) == 1
    assert "name a kubeconfig with --kubeconfig" in capsys.readouterr().err
    assert main([*command, "--kubeconfig", str(tmp_path / "none")]) == 1
    assert f"no kubeconfig at {tmp_path / 'none'}" in capsys.readouterr().err
    file = kubeconfig("http://127.0.0.1:1", tmp_path)
    assert main([*command, "--kubeconfig", str(file), "--context", "other"]) == 1
    assert "no context is named 'other' (it has: it)" in capsys.readouterr().err
    assert main([*command, "--kubeconfig", str(file)]) == 1
    assert "check that the API server runs" in capsys.readouterr().err
    assert main([*command, "--watch", "--cluster", str(file)]) == 2
    assert "--watch needs an API server" in capsys.readouterr().err


async def test_what_others_wrote_does_not_reach_the_terminal(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    resource, body = _reported(server)
    body["status"]["conditions"] = [
        {
            "type": "Stalled",
            "status": "True",
            "reason": "CPUsShared",
            "message": "\x1b]0;owned\x07 [red]x[/red]",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]
    server.put(resource, body)
    body = _changeable(server, NODE_ASSIGNMENTS)
    told = body["spec"].get("refused") or body["status"]["refusals"]
    told[0]["message"] = "\x1b[2J"
    server.put(NODE_ASSIGNMENTS, body)
    assert await asked(server, tmp_path, "get", "node-1") == 0
    drawn = capsys.readouterr().out
    assert "\x1b" not in drawn
    assert "\\x1b]0;owned\\x07 [red]x[/red]" in drawn


WATCH = "from numapin_cli.main import main; import sys; sys.exit(main())"


async def watching(server: FakeApiServer, folder: Path, *more: str) -> asyncio.subprocess.Process:
    flags = ["--kubeconfig", str(kubeconfig(server.url, folder)), "--watch", *more]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", WATCH, "get", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def lines_until(process: asyncio.subprocess.Process, word: str) -> str:
    assert process.stdout is not None
    text = ""
    while word not in text:
        line = await process.stdout.readline()
        assert line, f"it ended after {text}"
        text += line.decode()
    return text


async def test_a_watch_shows_each_change_once_and_ends_on_an_interrupt(
    server: FakeApiServer, tmp_path: Path
) -> None:
    process = await watching(server, tmp_path)
    try:
        await lines_until(process, "node-3 ")
        server.put(NODES, node_body("node-4", "8"))
        resource, body = _reported(server)
        body["status"]["conditions"] = []
        server.put(resource, body)
        later = await lines_until(process, "node-4 ")
        assert "not reported" in later
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
        assert (process.returncode, out, err) == (130, b"", b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_watch_whose_reader_has_left_ends_without_a_word(
    server: FakeApiServer, tmp_path: Path
) -> None:
    process = await watching(server, tmp_path, "-o", "json")
    try:
        assert process.stdout is not None
        await lines_until(process, "node-3")
        transport = process.stdout._transport  # type: ignore[attr-defined]
        transport.close()
        while process.returncode is None:
            resource, body = _reported(server)
            body["status"]["driftCount"] = body["status"].get("driftCount", 0) + 1
            server.put(resource, body)
            await asyncio.wait([asyncio.create_task(process.wait())], timeout=0.2)
        assert process.stderr is not None
        assert (process.returncode, await process.stderr.read()) == (141, b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _reported(server: FakeApiServer) -> tuple[Resource, Body]:
    """The object of node-1 that has what its enforcer reports, to be changed."""
    is_apart = (NODE_REPORTS.collection_path(), "", "node-1") in server.objects
    resource = NODE_REPORTS if is_apart else NODE_ASSIGNMENTS
    return resource, _changeable(server, resource)


def _changeable(server: FakeApiServer, resource: Resource) -> Body:
    found: Body = json.loads(json.dumps(server.objects[resource.collection_path(), "", "node-1"]))
    return found


@pytest.mark.parametrize("words", [["get"], ["get", "node-1"], ["get", "node-1", "node-2"]])
async def test_without_reports_that_may_be_read_it_says_so(
    tmp_path: Path, capsys: Capture, words: list[str]
) -> None:
    async with FakeApiServer() as server:
        dump = await asyncio.to_thread(make_dump)
        fill(server, {"items": all_in_three(dump["items"])})
        server.forbidden |= {"list nodereports", "get nodereports"}
        assert await asked(server, tmp_path, *words) == 0
        captured = capsys.readouterr()
        assert "not reported" in captured.out
        assert captured.err.startswith("not read: nodereports: tester may not ")
        assert captured.err.count("\n") == 1


@pytest.mark.parametrize("words", [["get"], ["get", "node-1"], ["get", "-o", "json"]])
async def test_older_crds_have_no_kinds_of_reports(
    tmp_path: Path, capsys: Capture, words: list[str]
) -> None:
    async with FakeApiServer() as server:
        fill(server, await asyncio.to_thread(make_dump))
        assert await asked(server, tmp_path, *words) == 0
        whole = capsys.readouterr()
        for refused in (server.unknown, server.forbidden):
            refused |= {"nodereports", "nodetopologies"}
            refused |= {"list nodereports", "get nodereports", "list nodetopologies"}
            assert await asked(server, tmp_path, *words) == 0
            assert capsys.readouterr() == whole


@pytest.mark.parametrize(
    ("wrong", "known", "sentence"),
    [
        ("worker1", ["worker-1", "master"], "did you mean worker-1?"),
        ("web", ["web-0", "web-1", "db"], "did you mean web-0 or web-1?"),
        ("x", [], "there is none at all"),
        ("q", ["a", "b", "c", "d", "e"], "there is a, b, c and 2 more"),
    ],
)
def test_near_names(wrong: str, known: list[str], sentence: str) -> None:
    assert did_you_mean(wrong, known) == sentence
