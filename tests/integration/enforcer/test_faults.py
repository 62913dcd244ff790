"""Bad input and missing parts give a clear condition or error, and the last good state stays."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from numapin_lab.node.cgroups import MOUNTS, hierarchies
from numapin_lab.node.played_kubelet import Kubelet, Pod, make_cgroup
from numapin_lab.processes.ports import choose
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, cpus_of, write_cpus
from support.real.waiting import eventually


def _edited(node: Node, tmp_path: Path, old: str, new: str) -> str:
    """The node's kubeconfig with one text replaced."""
    text = Path(node.options["kubeconfig"]).read_text()
    assert old in text
    (tmp_path / "edited").write_text(text.replace(old, new))
    return str(tmp_path / "edited")


def _unreachable(node: Node, tmp_path: Path) -> str:
    """A kubeconfig with a port on which no server listens."""
    return _edited(node, tmp_path, node.api.url, f"https://127.0.0.1:{choose(1)[0]}")


def _bad_specs(uid: str) -> dict[str, tuple[dict[str, Any], str]]:
    return {
        "a CPU this machine lacks": (
            spec(assigned(uid, "main", "9"), shared="0"),
            "spec.containers[0].cpus: this machine has no CPU 9; online are 0-1",
        ),
        "two containers on one CPU": (
            spec(assigned(uid, "main", "1"), assigned("another", "main", "1"), shared="0"),
            "CPU 1 of default/pod-",
        ),
        "exclusive CPUs in the pool": (
            spec(assigned(uid, "main", "1")),
            "is in the shared pool as well",
        ),
        "a backward range": (spec(assigned(uid, "main", "1-0"), shared="0"), "runs backwards"),
    }


@pytest.mark.parametrize("case", list(_bad_specs("")))
async def test_a_bad_spec_is_refused_whole(
    node: Node, exclusive: tuple[Pod, str], case: str
) -> None:
    pod, cgroup = exclusive
    bad, message = _bad_specs(pod.uid)[case]
    node.assign(bad)
    status, reason, shown = await eventually(
        lambda: node.condition("Stalled")[0] == "True" and node.condition("Stalled")
    )
    assert (status, reason) == ("True", "InvalidAssignment")
    assert message in shown
    assert node.condition("Ready")[0] == "False"
    assert cpus_of(cgroup) == "1"
    assert node.status["containers"][0]["cpus"] == "1"
    write_cpus(cgroup, "0")
    await eventually(lambda: cpus_of(cgroup) == "1", "the last good spec to be enforced still")
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))


async def test_the_api_server_is_down_at_the_start(
    node: Node, exclusive: tuple[Pod, str], tmp_path: Path
) -> None:
    _, cgroup = exclusive
    await node.stop()
    write_cpus(cgroup, "0-1")
    await node.start(kubeconfig=_unreachable(node, tmp_path))
    await eventually(lambda: cpus_of(cgroup) == "1", "the kept assignment to be enforced")
    await eventually(lambda: "API server: GET https" in node.probe("readyz")[1])
    assert node.probe("readyz")[0] == 503


def _flip(text: str) -> str:
    return text.replace('"cpus": "1"', '"cpus": "0"')


def _foreign(text: str) -> str:
    return json.dumps(json.loads(text) | {"node": "another"})


@pytest.mark.parametrize("damage", [_flip, _foreign], ids=["damaged", "of another node"])
async def test_a_bad_local_copy_is_refused_and_nothing_is_touched(
    node: Node, exclusive: tuple[Pod, str], tmp_path: Path, damage: Any
) -> None:
    _, cgroup = exclusive
    await node.stop()
    copy = Path(node.options["state-dir"]) / "assignment.json"
    copy.write_text(damage(copy.read_text()))
    write_cpus(cgroup, "0-1")
    await node.start(kubeconfig=_unreachable(node, tmp_path))
    await eventually(lambda: "InvalidLocalCopy" in node.probe("readyz")[1])
    assert cpus_of(cgroup) == "0-1"
    await node.stop()
    await node.start()
    await eventually(lambda: cpus_of(cgroup) == "1", "the API server's word to count again")
    (note,) = await eventually(lambda: node.notes("InvalidLocalCopy"))
    assert "is not used" in note


async def test_a_hanging_runtime_blocks_nothing_else(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    pid = kubelet.runtime.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        node.assign(spec(assigned(pod.uid, "main", "0"), shared="1", reserved="1"))
        await eventually(lambda: cpus_of(cgroup) == "0", "the pin while the runtime hangs")
        await eventually(lambda: node.condition("Stalled")[1] == "RuntimeUnavailable")
        assert "no answer in 5 s" in node.condition("Stalled")[2]
        assert node.status["containers"][0]["cpus"] == "0"
    finally:
        os.kill(pid, signal.SIGCONT)
    await eventually(node.in_force)


async def test_a_missing_runtime_socket_is_reported(
    node: Node, kubelet: Kubelet, tmp_path: Path
) -> None:
    node.assign(spec())
    await node.start(**{"cri-socket": str(tmp_path / "none.sock")})
    await eventually(lambda: node.condition("Stalled")[1] == "RuntimeUnavailable")
    assert "none.sock: [Errno 2] No such file" in node.condition("Stalled")[2]
    assert "--cri-socket" in node.condition("Stalled")[2]


async def test_a_socket_of_another_protocol_is_reported_and_never_ready(
    node: Node, kubelet: Kubelet
) -> None:
    """containerd's own ttrpc takes the question and does not answer."""
    node.assign(spec())
    await node.start(**{"cri-socket": f"{kubelet.runtime.socket}.ttrpc"})
    answers = set[int]()

    def reported() -> bool:
        answers.add(node.probe("readyz")[0])
        return node.condition("Stalled")[1] == "RuntimeUnavailable"

    await eventually(reported)
    assert answers == {503}
    assert "no answer in 5 s; start it, or name its socket" in node.condition("Stalled")[2]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """The host's cpuset cgroups, mounted read-only."""
    folder = tmp_path / "cgroup"
    (folder / "cpuset").mkdir(parents=True)
    mount = folder / "cpuset"
    subprocess.run(["mount", "--bind", CPUSET, mount], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", mount], check=True)
    yield folder
    subprocess.run(["umount", mount], check=True)


async def test_read_only_cgroups_are_reported(
    node: Node, exclusive: tuple[Pod, str], read_only: Path
) -> None:
    pod, cgroup = exclusive
    await node.stop()
    await node.start(cgroupfs=str(read_only))
    node.assign(spec(assigned(pod.uid, "main", "0"), shared="1", reserved="1"))
    await eventually(lambda: node.condition("Stalled")[1] == "CgroupsReadOnly")
    assert "mount the host's cgroups writable" in node.condition("Stalled")[2]
    assert cpus_of(cgroup) == "1"
    assert node.status["containers"] == [
        {"podUID": pod.uid, "container": "main", "cpus": "1", "mems": "0", "exclusive": False}
    ]


async def test_too_few_inotify_watches_are_reported(node: Node, exclusive: tuple[Pod, str]) -> None:
    """Reported with the remedy; the resync finds changes without an event."""
    pod, cgroup = exclusive
    await node.stop()
    limit = "echo 3 >/proc/sys/user/max_inotify_watches"
    await node.start(
        within=("unshare", "--user", "--map-root-user", "sh", "-c", f'{limit} && exec "$@"', "-")
    )
    node.assign(spec(assigned(pod.uid, "main", "0"), shared="1", reserved="1"))
    await eventually(lambda: node.condition("Stalled")[1] == "WatchIncomplete")
    assert "raise fs.inotify.max_user_watches" in node.condition("Stalled")[2]
    assert "raise fs.inotify.max_user_watches" in node.probe("readyz")[1]
    assert node.status["containers"][0]["cpus"] == "0"
    write_cpus(cgroup, "1")
    await eventually(lambda: cpus_of(cgroup) == "0", "the slow pass to repair it")


def has_counted(node: Node, times: int) -> bool:
    return bool(node.status["driftCount"] >= times)


async def test_a_storm_of_events_starves_no_other_work(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    """Whatever causes endless events, changes are still reverted and reported."""
    pod, cgroup = exclusive
    nested, sandbox = f"{cgroup}/noisy", f"{pod.cgroup}/{pod.sandbox_id}"
    make_cgroup(nested)
    stop = threading.Event()

    def storm() -> None:
        while not stop.wait(0.001):
            write_cpus(nested, "1")

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        # What is changed again before it was read back counts as one change.
        for times in (1, 2, 3):
            write_cpus(sandbox, "1")
            await eventually(lambda: cpus_of(sandbox) == "0", "the repair in the midst of it")
            await eventually(partial(has_counted, node, times), f"{times} changes to be counted")
        assert node.probe("healthz")[0] == 200
    finally:
        stop.set()
        thread.join()
        for mount in hierarchies(MOUNTS.read_text()):
            (mount / nested).rmdir()


async def test_a_mount_without_cpuset_is_reported(node: Node, tmp_path: Path) -> None:
    await node_ends(node, "no cpuset controller below", cgroupfs=str(tmp_path))


async def test_an_invalid_kubeconfig_is_reported(node: Node, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("hello")
    await node_ends(node, str(tmp_path / "wrong"), kubeconfig=str(tmp_path / "wrong"))


async def test_a_kubeconfig_that_the_api_server_rejects_is_reported(
    node: Node, exclusive: tuple[Pod, str], tmp_path: Path
) -> None:
    """The last accepted assignment stays in force."""
    _, cgroup = exclusive
    await node.stop()
    write_cpus(cgroup, "0-1")
    (tmp_path / "wrong-token").write_text("somebody-else")
    token = str(tmp_path / "login" / "token")
    wrong = _edited(node, tmp_path, token, str(tmp_path / "wrong-token"))
    await node.start(kubeconfig=wrong)
    await eventually(lambda: cpus_of(cgroup) == "1")
    await eventually(lambda: "401" in node.probe("readyz")[1])


async def node_ends(node: Node, message: str, **options: str) -> None:
    """The enforcer must end at once with status 1, and say why in one line."""
    node.launch([f"--{name}={value}" for name, value in {**node.options, **options}.items()])
    await eventually(node.ended)
    assert node.process is not None
    assert node.process.returncode == 1
    (line,) = node.log.splitlines()
    assert line.startswith("numapin-enforcer: ")
    assert message in line


async def test_no_container_is_reported_exclusive_before_its_spec_is_on_disk(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    """The disk is slow: an enforcer killed now would start with the previous assignment."""
    first, _ = exclusive
    second = await kubelet.run_pod("second")
    cgroup = f"{second.cgroup}/{await kubelet.run(second, 'main')}"
    folder = Path(node.options["state-dir"])
    slow = folder / "assignment.new"
    os.mkfifo(slow)  # opening it for writing waits for a reader
    node.assign(spec(assigned(second.uid, "main", "1"), shared="0"))
    await eventually(lambda: "being saved on the node" in node.condition("Reconciling")[2])
    assert node.condition("Reconciling")[0] == "True"
    containers = node.status["containers"]
    assert [(one["podUID"], one["cpus"], one["exclusive"]) for one in containers] == [
        (second.uid, "1", False)
    ]
    assert cpus_of(cgroup) == "1"
    reader = os.open(slow, os.O_RDONLY | os.O_NONBLOCK)
    slow.unlink(missing_ok=True)  # the enforcer may have been quicker
    await eventually(node.in_force)
    os.close(reader)
    assert node.status["containers"][0]["exclusive"]
    await eventually(lambda: second.uid in (folder / "assignment.json").read_text())
    assert first.uid not in (folder / "assignment.json").read_text()
