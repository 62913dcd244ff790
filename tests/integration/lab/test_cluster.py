"""The whole lab without numapin's own programs: kubelet, containerd, real pods."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from numapin_lab.cluster import Cluster
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import PARTS, LabFolder
from numapin_lab.node.cgroups import LabCgroup
from numapin_lab.node.mount_namespace import WANTED_SETTINGS
from numapin_lab.node.mounts import MOUNTS, below
from numapin_lab.processes import daemons
from numapin_lab.processes.daemons import kill, marked, wait_until
from numapin_lab.processes.ports import is_free

WITHOUT = frozenset({"operator", "enforcer"})
CLUSTER_PARTS = [part for part in PARTS if part not in {*WITHOUT, "standby"}]
RUNNING_SECONDS = 240

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: docker.io/library/busybox:1.35
      command: [sh, -c, "echo hello from $HOSTNAME; sleep 86400"]
"""


@pytest.fixture(scope="module")
def folder(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabFolder]:
    folder = LabFolder(tmp_path_factory.mktemp("cluster"))
    try:
        yield folder
    finally:
        folder.down()


@pytest.fixture(scope="module")
def cluster(folder: LabFolder) -> Cluster:
    return folder.up(WITHOUT)


def run_pod(cluster: Cluster, name: str) -> None:
    cluster.kubectl("apply", "-f", "-", text=POD.format(name=name))
    path = f"/api/v1/namespaces/default/pods/{name}"
    wait_until(lambda: cluster.api.get(path)["status"]["phase"] == "Running", name, RUNNING_SECONDS)


def pids(folder: LabFolder) -> dict[str, int | None]:
    return {part.name: part.pid for part in folder.status()}


def leftovers(folder: LabFolder, name: str) -> list[object]:
    run = Path("/run") / name
    return [
        *marked(folder.path),
        *below(MOUNTS.read_text(), (folder.path, run)),
        *(group for group in LabCgroup(name).folders() if group.exists()),
        *([run] if run.exists() else []),
    ]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "numapin_lab", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_a_pod_runs_in_the_labs_own_cgroup(cluster: Cluster) -> None:
    run_pod(cluster, "first")
    views = {(view.pod, view.container): view for view in cluster.containers()}
    assert views["first", "main"].allowed
    assert views["first", "(sandbox)"].allowed


def test_kubectl_reaches_into_the_node(cluster: Cluster) -> None:
    run_pod(cluster, "talkative")
    assert cluster.kubectl("logs", "talkative") == "hello from talkative\n"
    assert cluster.kubectl("exec", "talkative", "--", "echo", "inside") == "inside\n"


def test_the_machine_outside_is_left_alone(cluster: Cluster) -> None:
    """The kubelet set none of the kernel's settings: it found them, inside, as it wants them."""
    inside = cluster.runtime.mount_namespace.inside(["cat"])
    for name, wanted in WANTED_SETTINGS.items():
        setting = f"/proc/sys/{name}"
        seen = subprocess.run([*inside, setting], capture_output=True, text=True, check=True)
        assert seen.stdout.strip() == wanted
    assert not list(Path("/var/lib").glob("cni/results/lab-network-*"))
    assert below(MOUNTS.read_text(), [Path("/proc/sys"), Path("/var/lib/kubelet")]) == []


@pytest.mark.parametrize("part", CLUSTER_PARTS)
def test_up_brings_back_just_the_part_that_was_killed(
    part: str, cluster: Cluster, folder: LabFolder
) -> None:
    run_pod(cluster, "survivor")
    before = pids(folder)
    containers = cluster.containers()
    killed = before[part]
    assert killed is not None
    kill(killed)
    folder.up(WITHOUT)
    after = pids(folder)
    assert after.pop(part) not in {None, before.pop(part)}
    assert after == before
    assert cluster.containers() == containers


def test_up_again_touches_nothing(cluster: Cluster, folder: LabFolder) -> None:
    before = pids(folder)
    folder.up(WITHOUT)
    assert pids(folder) == before


def test_status_shows_pids_and_logs(cluster: Cluster, folder: LabFolder) -> None:
    answer = command("status", "--dir", str(folder.path))
    assert answer.returncode == 0, answer.stderr
    for name in CLUSTER_PARTS:
        line = next(line for line in answer.stdout.splitlines() if line.split()[0] == name)
        assert line.split()[1:] == ["running", str(pids(folder)[name]), f"{folder.path}/{name}/log"]
    assert answer.stdout.splitlines()[-1] == f"KUBECONFIG={folder.kubeconfig}"


def test_two_labs_live_side_by_side_and_down_leaves_nothing(
    cluster: Cluster, folder: LabFolder, tmp_path: Path
) -> None:
    other = LabFolder(tmp_path)
    before = pids(folder)
    answer = command("up", "--no-operator", "--no-enforcer", "--dir", str(other.path))
    try:
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.splitlines()[-1] == f"KUBECONFIG={other.kubeconfig}"
        state = other.state()
        assert state is not None
        assert state.name != cluster.state.name
    finally:
        answer = command("down", "--dir", str(other.path))
    assert answer.returncode == 0, answer.stderr
    assert leftovers(other, state.name) == []
    assert command("status", "--dir", str(other.path)).stdout.splitlines()[-1] == "the lab is down"
    assert pids(folder) == before
    run_pod(cluster, "neighbour")


def test_down_ends_an_up_that_was_interrupted(tmp_path: Path) -> None:
    folder = LabFolder(tmp_path)

    def interrupt(step: str) -> None:
        if "kubelet" in step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.up(WITHOUT, progress=interrupt)
    state = folder.state()
    assert state is not None
    assert leftovers(folder, state.name) != []
    folder.down()
    assert leftovers(folder, state.name) == []
    folder.down()


def test_a_port_that_was_taken_meanwhile_is_named(
    cluster: Cluster, folder: LabFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "PORT_SECONDS", 1.0)
    scheduler = pids(folder)["kube-scheduler"]
    assert scheduler is not None
    kill(scheduler)
    port = cluster.state.ports.scheduler
    wait_until(lambda: is_free(port), "the killed scheduler to let go of its port", 60)
    with socket.socket() as squatter:
        # connections of the one that was killed may linger; they do not hold the port
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        with pytest.raises(LabError, match=f"port {port} of kube-scheduler"):
            folder.up(WITHOUT)
    folder.up(WITHOUT)
