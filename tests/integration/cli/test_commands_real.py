"""`numapin get`, `explain` and `report` against a real API server, with and without our CRDs."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from numapin_cli.main import main
from numapin_client.client import ApiClient
from numapin_client.events import WARNING, Event, Reporter, post_event
from numapin_client.resources import (
    NODE_ASSIGNMENTS,
    PODS,
    Json,
    Key,
)
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from support.fakes.worlds.asked_cluster import Bare, Capture

ROOT = Path(__file__).parents[3]


async def ask(plane: ControlPlane, *words: str, login: Path | None = None) -> int:
    flags = ("--kubeconfig", str(login or plane.kubeconfig))
    return await asyncio.to_thread(main, [*words, *flags])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("get", "does not serve numapin.io/v1beta1; beside an older"),
        ("get node-1", "does not serve numapin.io/v1beta1; beside an older"),
        ("status", "does not serve numapin.io/v1beta1; beside an older"),
        ("explain policy/x", "does not serve numapin.io/v1beta1; beside an older"),
        ("explain pod/x", "there is no pod x in namespace default; there is none at all"),
        ("explain node/x", "there is no node x; there is none at all"),
    ],
)
def test_a_server_without_the_crds_is_named(
    bare_answers: dict[str, Bare], words: str, message: str
) -> None:
    assert bare_answers[words].status == 1
    assert message in bare_answers[words].error


async def test_a_refused_pod_is_explained_with_advice(plane: ControlPlane, capsys: Capture) -> None:
    assert await ask(plane, "explain", "b", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["why"][0].startswith("wanted 4 CPUs, 2 free: 6-7")
    kinds = {one["kind"] for one in found["remedies"]}
    assert kinds == {"release", "node", "size"}
    assert await ask(plane, "explain", "pending") == 0
    assert "create" not in capsys.readouterr().out


async def test_status_knows_what_the_server_serves(plane: ControlPlane, capsys: Capture) -> None:
    assert await ask(plane, "status", "-o", "json") == 3  # numapin's own pods are missing
    found = json.loads(capsys.readouterr().out)
    assert found["servedVersions"] == ["v1beta1", "v1alpha1"]
    assert found["kubernetes"].startswith("v1.")
    assert found["nodes"]["states"]["Ready"] == 2
    assert [one["policy"] for one in found["policies"]] == ["web"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("pool in (node-1,none)", ["node/node-1"]),
        ("pool!=node-1,pool", ["node/node-2"]),
        ("!pool", []),
    ],
)
async def test_get_selects_labels_as_kubectl_does(
    plane: ControlPlane, capsys: Capture, selector: str, names: list[str]
) -> None:
    assert await ask(plane, "get", "-l", selector, "-o", "name") == 0
    assert capsys.readouterr().out.split() == names
    assert plane.kubectl("get", "nodes", "-l", selector, "-o", "name").split() == names


async def test_a_report_of_the_server_answers_as_the_server_does(
    plane: ControlPlane, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "r.tar.gz"
    (tmp_path / "sys").mkdir()
    flags = ("-o", str(file), "--root", str(tmp_path))
    assert await ask(plane, "report", *flags) == 3  # numapin's own pods are missing
    assert "has no pods with the label" in capsys.readouterr().err
    for words in (["explain", "b", "-o", "json"], ["get", "node-1"], ["explain", "pending"]):
        status = await ask(plane, *words)
        of_server = capsys.readouterr().out
        assert await asyncio.to_thread(main, [*words, "--cluster", str(file)]) == status
        assert capsys.readouterr().out == of_server


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is searched for plug-ins, with that of this installation."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    program = Path(sys.executable).with_name("kubectl-numapin")
    (folder / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(folder))
    return tmp_path


async def test_kubectl_runs_the_commands_as_a_plug_in(
    plane: ControlPlane, plugged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))

    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(plane.programs["kubectl"]), "numapin", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for words in (["get", "node-1"], ["explain", "b", "-o", "json"], ["explain", "pod/pending"]):
        status = await asyncio.to_thread(main, words)
        expected = capsys.readouterr().out
        answer = await asyncio.to_thread(kubectl, *words)
        assert (answer.returncode, answer.stdout) == (status, expected), answer.stderr
    (plugged / "sys").mkdir()
    file = plugged / "report.tar.gz"
    answer = await asyncio.to_thread(kubectl, "report", "-o", str(file), "--root", str(plugged))
    assert answer.returncode == 3, answer.stderr  # numapin's own pods are missing
    assert file.exists()
    answer = await asyncio.to_thread(kubectl, "get", "node-11")
    assert answer.returncode == 1
    assert "there is no node node-11; did you mean node-1 or node-2?" in answer.stderr
    answer = await asyncio.to_thread(kubectl, "get", "--nothing")
    assert answer.returncode == 2
    assert answer.stderr.startswith("usage: kubectl numapin ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["get", "node-11"], "there is no node node-11; did you mean node-1 or node-2?"),
        (["explain", "pod/pendng"], "no pod pendng in namespace default; did you mean pending?"),
        (["explain", "policy/wep"], "there is no policy wep; did you mean web?"),
        (["explain", "a", "-n", "fast"], "no pod a in namespace fast, but in default; add -n"),
    ],
)
async def test_near_names_are_suggested(
    plane: ControlPlane, capsys: Capture, words: list[str], message: str
) -> None:
    assert await ask(plane, *words) == 1
    assert message in capsys.readouterr().err


async def test_a_pod_that_is_gone_is_explained_by_its_events(
    plane: ControlPlane, admin: ApiClient, capsys: Capture
) -> None:
    """The server selects Events by what they are about."""
    reporter = Reporter("numapin.io/operator", "test")
    for name, reason in (("was-here", "NotEnoughCPUs"), ("was-there", "CPUsAssigned")):
        regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name}
        event = Event(WARNING, reason, "Place", f"about {name}")
        await post_event(admin, regarding, event, reporter)
    assert await ask(plane, "explain", "pod/was-here", "-o", "json") == 3
    (found,) = json.loads(capsys.readouterr().out)["explanations"]
    assert found["verdict"] == "is gone; it was refused"
    assert [one["text"] for one in found["facts"]] == ["NotEnoughCPUs: about was-here"]
    assert await ask(plane, "explain", "was-there") == 0


async def test_a_workload_is_explained_before_it_has_pods(
    plane: ControlPlane, tmp_path: Path, capsys: Capture
) -> None:
    plane.kubectl("create", "deployment", "web", "--image=here/web:1")
    assert await ask(plane, "explain", "deployment.apps/web", "-o", "json") == 0  # it shares CPUs
    said = capsys.readouterr()
    (found,) = json.loads(said.out)["explanations"]
    assert found["subject"].startswith("pod default/web-")
    assert said.err.startswith("Deployment default/web has no pods yet")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["get"], "may not list nodeassignments.numapin.io in the whole cluster"),
        (["get", "node-1"], "may not get nodeassignments.numapin.io in the whole cluster"),
        (["explain", "pod/b"], "may not get pods in namespace default"),
        (["explain", "policy/web"], "may not get cpupolicies.numapin.io in the whole cluster"),
    ],
    ids=["list", "get", "pod", "policy"],
)
async def test_a_missing_right_is_named(
    plane: ControlPlane, tmp_path: Path, capsys: Capture, words: list[str], message: str
) -> None:
    account = ServiceAccount("default", "default")
    login = await asyncio.to_thread(log_in, plane, account, tmp_path)
    assert await ask(plane, *words, login=login) == 1
    captured = capsys.readouterr()
    assert f"system:serviceaccount:default:default {message}" in captured.err
    assert "kubectl auth can-i" in captured.err
    assert captured.out == ""


async def test_only_the_rights_that_the_docs_name_are_needed(
    plane: ControlPlane, admin: ApiClient, tmp_path: Path, capsys: Capture
) -> None:
    create = ("create", "clusterrole", "explainer", "--verb=get,list")
    ours = ("cpupolicies", "nodeassignments", "nodereports", "nodetopologies")
    resources = ",".join(["pods,nodes,namespaces", *(f"{one}.numapin.io" for one in ours)])
    await asyncio.to_thread(plane.kubectl, *create, f"--resource={resources}")
    bind = ("create", "clusterrolebinding", "explainer", "--clusterrole=explainer")
    await asyncio.to_thread(plane.kubectl, *bind, "--serviceaccount=default:explainer")
    await asyncio.to_thread(plane.kubectl, "create", "serviceaccount", "explainer")
    account = ServiceAccount("default", "explainer")
    login = await asyncio.to_thread(log_in, plane, account, tmp_path)
    for words, status in ((["explain", "b"], 3), (["get"], 0), (["explain", "node/node-1"], 0)):
        assert await ask(plane, *words, login=login) == status, capsys.readouterr()


async def test_a_watch_shows_a_change_and_ends_on_an_interrupt(
    plane: ControlPlane, admin: ApiClient
) -> None:
    command = [sys.executable, "-m", "numapin_cli.main", "explain", "pod/b", "--watch"]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--kubeconfig", str(plane.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        text = ""
        while "Pod default/b was refused" not in text:
            line = await process.stdout.readline()
            assert line
            text = line.decode()
        await admin.delete(PODS, Key("a", "default"))
        body = await admin.get(NODE_ASSIGNMENTS, Key("node-1"))
        patch: Json = {"status": {"running": []}}
        await admin.merge_patch(NODE_ASSIGNMENTS, Key.of(body), patch, subresource="status")
        while "create the pod again: it fits by now" not in text:
            line = await process.stdout.readline()
            assert line
            text = line.decode()
        process.send_signal(signal.SIGINT)
        _, error = await process.communicate()
        assert (process.returncode, error) == (130, b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
