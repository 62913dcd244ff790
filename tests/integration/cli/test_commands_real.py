"""`numapin get`, `explain` and `report` against a real API server, with and without our CRDs."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from numapin_cli.main import main
from numapin_client.client import ApiClient, connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_client.resources import NODE_ASSIGNMENTS, NODES, PODS, Json, Key
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from support.fakes.worlds.asked_cluster import RESOURCES
from support.fakes.worlds.described_cluster import World, cluster
from support.real.installing.own_plane import own_plane
from support.values.operator import Body, pod_body

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]


class Bare(NamedTuple):
    """What a command answered before the CRDs were installed."""

    status: int
    error: str


@pytest.fixture(scope="module")
def bare_plane(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane of this module's own: others install the CRDs on the common one."""
    with own_plane(tmp_path_factory.mktemp("cli"), control_plane.programs) as plane:
        yield plane


@pytest.fixture(scope="module")
def bare_answers(bare_plane: ControlPlane) -> dict[str, Bare]:
    """The answers of a server without the CRDs."""
    answers = {}
    for words in ("get", "get node-1", "explain pod/x", "explain node/x", "explain policy/x"):
        command = [sys.executable, "-m", "numapin_cli.main", *words.split()]
        answers[words] = asyncio.run(_run(command, bare_plane.kubeconfig))
    return answers


async def _run(command: list[str], kubeconfig: Path) -> Bare:
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--kubeconfig", str(kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    assert out == b""
    assert process.returncode is not None
    return Bare(process.returncode, error.decode())


@pytest.fixture(scope="module")
def world() -> World:
    return cluster(
        pod_body("a", "4"),
        pod_body("b", "4", bound="2026-01-02T00:00:00Z"),
        pod_body("pending", "4", node=""),
    )


@pytest.fixture(scope="module")
def plane(bare_plane: ControlPlane, bare_answers: dict[str, Bare], world: World) -> ControlPlane:
    """The control plane with the CRDs, and the objects of `world`."""
    kubectl = bare_plane.kubectl
    kubectl("apply", "--server-side", "-k", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=120s")
    kubectl("get", "nodeassignments,cpupolicies")
    asyncio.run(_put_all(bare_plane, json.loads(world.dump())["items"]))
    return bare_plane


async def _put_all(plane: ControlPlane, bodies: list[Body]) -> None:
    """Create the objects; the UIDs that the server gives replace those of the fake one."""
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as admin:
        uids: dict[str, str] = {}
        for body in sorted(bodies, key=lambda one: one["kind"] == "NodeAssignment"):
            text = json.dumps(body)
            for old, new in uids.items():
                text = text.replace(f'"{old}"', f'"{new}"')
            await _put(admin, json.loads(text), uids)


async def _put(admin: ApiClient, body: Json, uids: dict[str, str]) -> None:
    resource, status = RESOURCES[body["kind"]], body.pop("status", None)
    metadata = body["metadata"]
    old = metadata.pop("uid", "")
    for key in ("resourceVersion", "creationTimestamp", "generation", "ownerReferences"):
        metadata.pop(key, None)
    if resource is PODS:
        body["spec"]["terminationGracePeriodSeconds"] = 0  # no kubelet ends it
    if resource is NODE_ASSIGNMENTS and "policy" in body["spec"]:
        body["spec"]["policy"]["since"] = 1  # all of it is the first generation here
    made = await admin.create(resource, body)
    if old:
        uids[old] = made["metadata"]["uid"]
    if status and resource in {NODES, NODE_ASSIGNMENTS}:
        if resource is NODE_ASSIGNMENTS:
            status["observedGeneration"] = made["metadata"]["generation"]
        patch = {"status": status}
        await admin.merge_patch(resource, Key.of(made), patch, subresource="status")


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfig_login(str(plane.kubeconfig))) as opened:
        yield opened


async def ask(plane: ControlPlane, *words: str, login: Path | None = None) -> int:
    flags = ("--kubeconfig", str(login or plane.kubeconfig))
    return await asyncio.to_thread(main, [*words, *flags])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("get", "does not serve numapin.io/v1beta1; beside an older"),
        ("get node-1", "does not serve numapin.io/v1beta1; beside an older"),
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
    resources = "pods,nodes,namespaces,cpupolicies.numapin.io,nodeassignments.numapin.io"
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
