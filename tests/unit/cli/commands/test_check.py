"""`numapin check` against an API server in memory, with the page of an enforcer on it."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from numapin_cli.commands import check
from numapin_cli.main import main
from numapin_client.resources import PODS
from support.fakes.apiserver import FakeApiServer
from support.fakes.apiserver_answers import Answer
from support.fakes.worlds.asked_cluster import Capture, asked
from support.values.telemetry.cpu_pages import container, cpu_page, interrupt, task

NAMESPACE, ENFORCER = "numapin-system", "numapin-enforcer-x"
PAGE = f"{ENFORCER}:8081/cpus"


def pod(name: str, namespace: str, node: str, labels: dict[str, str]) -> dict[str, Any]:
    ports = [{"name": "health", "containerPort": 8081}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "main", "ports": ports}]},
        "status": {"phase": "Running"},
    }


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeApiServer]:
    """A node with an enforcer and a pod."""
    monkeypatch.setattr(check, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(check, "LEAST_PAUSE_SECONDS", 0.01)
    async with FakeApiServer() as started:
        labels = {"app.kubernetes.io/component": "enforcer"}
        started.put(PODS, pod(ENFORCER, NAMESPACE, "worker-1", labels))
        started.put(PODS, pod("web", "shop", "worker-1", {}))
        yield started


def serve(server: FakeApiServer, *pages: dict[str, Any]) -> None:
    """Have the enforcer answer these, the last one again and again."""
    answers: Iterator[Answer] = (Answer(200, body=json.dumps(one).encode()) for one in pages)
    last = Answer(200, body=json.dumps(pages[-1]).encode())
    server.pages[PAGE] = lambda: next(answers, last)


def quiet(*, uid: str = "1") -> list[dict[str, Any]]:
    return [cpu_page(at, containers=[container(uid=uid)]) for at in (0.0, 10.0)]


def disturbed() -> list[dict[str, Any]]:
    return [
        cpu_page(
            at,
            tasks=[
                task(11, "evil\x1b[2J", 4, at / 10, int(at)),
                task(12, "kworker", 5, kernel=True),
            ],
            interrupts=[interrupt("24", "eth0", {5: int(at) * 9})],
        )
        for at in (0.0, 10.0)
    ]


async def test_a_quiet_node(server: FakeApiServer, tmp_path: Path, capsys: Capture) -> None:
    serve(server, *quiet())
    assert await asked(server, tmp_path, "check", "node/worker-1") == 0
    shown = capsys.readouterr().out
    assert "Node worker-1: measured for 10.0 s" in shown
    assert "d/p1 main: CPUs 4-5" in shown
    assert "not disturbed: others used 0.0 ms (0.00 %)" in shown


async def test_what_disturbs_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    serve(server, *disturbed())
    assert await asked(server, tmp_path, "check", "worker-1") == 3
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"evil\x1b[2J" in shown
    assert "1000.0 ms" in shown
    assert "24 eth0" in shown
    assert "90 times" in shown


async def test_a_document_for_scripts(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    serve(server, *disturbed())
    assert await asked(server, tmp_path, "check", "node", "worker-1", "-o", "json") == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["node"], found["seconds"], found["disturbed"]) == ("worker-1", 10.0, True)
    four, five = found["containers"][0]["perCPU"]
    assert [(one["name"], one["seconds"]) for one in four["tasks"]] == [("evil\x1b[2J", 1.0)]
    assert five["interrupts"] == [{"number": "24", "name": "eth0", "count": 90}]


async def test_the_containers_of_a_pod(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    uid = next(one for (_, space, _), one in server.objects.items() if space == "shop")["metadata"]
    both = [container(cpus="4", uid=uid["uid"]), container(cpus="5", uid="other")]
    serve(server, *(cpu_page(at, containers=both) for at in (0.0, 10.0)))
    assert await asked(server, tmp_path, "check", "shop/web", "-o", "yaml") == 0
    assert capsys.readouterr().out.count("podUID") == 1


async def test_a_pod_without_exclusive_cpus(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    serve(server, *quiet())
    assert await asked(server, tmp_path, "check", "pod/web", "-n", "shop") == 1
    assert "no container of pod shop/web has exclusive CPUs in force" in capsys.readouterr().err


async def test_nothing_is_written_and_little_is_read(server: FakeApiServer, tmp_path: Path) -> None:
    serve(server, *quiet())
    await asked(server, tmp_path, "check", "node/worker-1")
    assert {one.method for one in server.requests} == {"GET"}
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("node/nowhere", "no enforcer runs on node nowhere in namespace numapin-system"),
        ("nowhere", "no enforcer runs on node nowhere"),
        ("shop/nothing", "there is no pod nothing in namespace shop"),
    ],
)
async def test_what_is_not_there(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, target: str, said: str
) -> None:
    assert await asked(server, tmp_path, "check", target) == 1
    assert said in capsys.readouterr().err


async def test_a_pod_that_is_on_no_node(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.put(PODS, pod("waits", "shop", "", {}))
    assert await asked(server, tmp_path, "check", "shop/waits") == 1
    assert "pod shop/waits is on no node yet" in capsys.readouterr().err


async def test_an_enforcer_without_the_page(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    server.pages[f"{ENFORCER}:8081/metrics"] = Answer
    assert await asked(server, tmp_path, "check", "node/worker-1") == 1
    assert "runs without --cpu-metrics" in capsys.readouterr().err


async def test_an_enforcer_that_is_not_reached(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    assert await asked(server, tmp_path, "check", "node/worker-1") == 1
    error = capsys.readouterr().err
    assert f"does not reach pod {NAMESPACE}/{ENFORCER}, port 8081, on node worker-1" in error
    assert "NetworkPolicy" in error


@pytest.mark.parametrize("body", [b"{}", b"[]", b"not JSON", b'{"takenSeconds":"x"}'])
async def test_a_page_that_is_none(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, body: bytes
) -> None:
    server.pages[PAGE] = lambda: Answer(200, body=body)
    assert await asked(server, tmp_path, "check", "node/worker-1") == 1
    assert "of the same version?" in capsys.readouterr().err


async def test_a_page_that_does_not_change(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    serve(server, quiet()[0])
    assert await asked(server, tmp_path, "check", "node/worker-1", "--seconds", "1") == 1
    assert "the enforcer makes no new page" in capsys.readouterr().err


async def test_a_node_that_was_started_again(
    server: FakeApiServer, tmp_path: Path, capsys: Capture
) -> None:
    serve(server, cpu_page(50.0), cpu_page(1.0))
    assert await asked(server, tmp_path, "check", "node/worker-1") == 1
    assert "was started again" in capsys.readouterr().err


@pytest.mark.parametrize("right", ["list pods", "get pods/proxy"])
async def test_a_missing_right_is_named(
    server: FakeApiServer, tmp_path: Path, capsys: Capture, right: str
) -> None:
    serve(server, *quiet())
    server.forbidden.add(right)
    assert await asked(server, tmp_path, "check", "node/worker-1") == 1
    assert f"tester may not {right} in namespace {NAMESPACE}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["policy/web"], ["a", "b", "c"], ["deployment", "web"]])
def test_targets_that_have_no_cpus(words: list[str], capsys: Capture) -> None:
    assert main(["check", *words]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "0.5", "301", "nan", "soon"])
def test_a_time_that_is_too_short_or_too_long(seconds: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["check", "node/worker-1", "--seconds", seconds])
    assert "from 1 to 300" in capsys.readouterr().err
