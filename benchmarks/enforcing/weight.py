"""Memory of an enforcer after many assignments, and its CPU time while idle.

etcd, kube-apiserver, containerd and this machine's cgroups are real. The pods are only cgroups
without processes; the enforcer treats them like any others.
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from labs import progress

from numapin_client.login.in_cluster import SERVICE_ACCOUNT_DIR
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CONTROL_PLANE, RUNTIME
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.measurement.figures import Figure
from numapin_lab.node.cgroups import MOUNTS, LabCgroup, hierarchies
from numapin_lab.node.containerd import Runtime
from numapin_lab.processes import usage
from numapin_lab.processes.daemons import wait_until
from numapin_lab.processes.ports import choose

ROOT = Path(__file__).parents[2]
NODE = "bench"
PATH = "/apis/numapin.io/v1alpha1/nodeassignments"
WAIT_SECONDS = 60


@dataclass(frozen=True)
class Weight:
    """Memory of a process; `cpu_seconds` since its start."""

    resident_mib: float
    peak_mib: float
    private_mib: float
    cpu_seconds: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """The present values of a process."""
        return cls(
            usage.resident_mib(pid),
            usage.peak_mib(pid),
            usage.private_mib(pid),
            usage.cpu_seconds(pid),
        )


def make_pods(root: str, count: int) -> list[str]:
    """Cgroups of `count` best-effort and Guaranteed pods, a sandbox and a container each."""
    uids = [str(uuid.uuid4()) for _ in range(count)]
    for number, uid in enumerate(uids):
        qos = "" if number % 2 else "besteffort/"
        for container in (secrets.token_hex(32), secrets.token_hex(32)):
            make_cgroup(f"{root}/kubepods/{qos}pod{uid}/{container}")
    return uids


def make_cgroup(path: str) -> None:
    """In every hierarchy; on v1 a new cpuset gets its parent's sets, as the kubelet does."""
    for mount in hierarchies(MOUNTS.read_text()):
        folder = mount
        for part in path.strip("/").split("/"):
            folder = folder / part
            folder.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                file = folder / name
                while file.exists() and not file.read_text().strip():
                    with suppress(PermissionError):  # the enforcer has just narrowed the parent
                        file.write_text((folder.parent / name).read_text())


@contextmanager
def parts(folder: Path) -> Iterator[tuple[ControlPlane, Runtime]]:
    """Run a private control plane and a private runtime."""
    programs = {name: found.path for name, found in provide([*CONTROL_PLANE, *RUNTIME]).items()}
    name = f"numapin-bench-{secrets.token_hex(3)}"
    plane = ControlPlane(folder / "cp", ControlPlanePorts(*choose(3)), programs)
    runtime = Runtime(folder / "rt" / "containerd", Path("/run") / name, LabCgroup(name), programs)
    try:
        plane.start()
        runtime.start()
        plane.kubectl("apply", "--server-side", "-k", str(ROOT / "crds"))
        wait_until(lambda: served(plane), "the CRDs", WAIT_SECONDS)
        yield plane, runtime
    finally:
        runtime.stop()
        plane.stop()


def served(plane: ControlPlane) -> bool:
    """Whether the API server serves our CRDs."""
    try:
        return plane.api.exists(PATH)
    except AnswerError:  # "storage is (re)initializing"
        return False


def assign(plane: ControlPlane, uid: str) -> int:
    """Give the second CPU to one pod's container; returns the spec's generation."""
    owner = {"podUID": uid, "namespace": "default", "pod": uid, "container": "main"}
    spec: dict[str, Any] = {
        "pools": {"reserved": "0", "shared": "0"},
        "containers": [{**owner, "cpus": "1", "exclusive": True}],
    }
    body: dict[str, Any] = {"apiVersion": "numapin.io/v1alpha1", "kind": "NodeAssignment"}
    body |= {"metadata": {"name": NODE}, "spec": spec}
    query = "fieldManager=bench&force=true"
    answer = plane.api.request("PATCH", f"{PATH}/{NODE}?{query}", body)
    return int(answer["metadata"]["generation"])


def observed(plane: ControlPlane) -> int:
    """The generation that the enforcer has reported; 0 before its first report."""
    status = plane.api.get(f"{PATH}/{NODE}").get("status") or {}
    return int(status.get("observedGeneration", 0))


def service_account(plane: ControlPlane, folder: Path) -> tuple[Path, dict[str, str]]:
    """What a pod gets of its service account: the folder to mount, and the environment."""
    SERVICE_ACCOUNT_DIR.mkdir(parents=True, exist_ok=True)  # a place to mount: it stays empty
    account = folder / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text(plane.admin_token)
    (account / "ca.crt").write_bytes(plane.ca.read_bytes())
    variables = {"HOST": plane.host, "PORT": str(plane.ports.apiserver)}
    pod = {f"KUBERNETES_SERVICE_{name}": value for name, value in variables.items()}
    outside = {name: one for name, one in os.environ.items() if name != "KUBECONFIG"}
    return account, outside | pod


@contextmanager
def enforcer(plane: ControlPlane, runtime: Runtime, folder: Path) -> Iterator[int]:
    """Run an enforcer with the settings and the login of the DaemonSet; yields its process id.

    A kubeconfig would take 1.1 MiB more: a pod loads no parser of YAML.
    """
    command = [sys.executable, "-m", "numapin_enforcer", f"--node-name={NODE}"]
    command += [f"--cri-socket={runtime.socket}"]
    command += [f"--cgroup-root={runtime.cgroup.path}", f"--state-dir={folder / 'state'}"]
    command += [f"--kubelet-state-dir={folder}", f"--health-address=127.0.0.1:{choose(1)[0]}"]
    account, environment = service_account(plane, folder)
    mounting = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1"; shift; exec "$@"']
    command = [*mounting, str(account), str(SERVICE_ACCOUNT_DIR), *command]
    with (folder / "enforcer.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_SECONDS)


@dataclass(frozen=True)
class Weighed:
    """An enforcer when it was fresh, after many assignments, and after some idleness."""

    fresh: Weight
    busy: Weight
    idle: Weight
    assignments: int
    idle_seconds: float


def measure(pods: int, assignments: int, idle_seconds: float) -> Iterator[Figure]:
    """Measure memory and CPU time of one enforcer."""
    with (
        tempfile.TemporaryDirectory(prefix="numapin-bench-") as name,
        parts(Path(name)) as (plane, runtime),
    ):
        uids = make_pods(runtime.cgroup.path, pods)
        with enforcer(plane, runtime, Path(name)) as pid:
            found = weighed(plane, uids, (assignments, idle_seconds), pid)
    each = (found.busy.cpu_seconds - found.fresh.cpu_seconds) / max(1, found.assignments) * 1000
    idle = (found.idle.cpu_seconds - found.busy.cpu_seconds) / idle_seconds * 100
    subject = f"enforcer, {pods} pods"
    yield _one(f"{subject}: RSS when fresh", "MiB", found.fresh.resident_mib)
    limit = f"budget 50, after {found.assignments} assignments"
    yield _one(f"{subject}: RSS", "MiB", found.idle.resident_mib, limit)
    yield _one(f"{subject}: private memory", "MiB", found.idle.private_mib)
    yield _one(f"{subject}: RSS at its peak", "MiB", found.idle.peak_mib)
    yield _one(f"{subject}: CPU for one assignment", "ms", each)
    yield _one(f"{subject}: idle, of a CPU", "%", idle, f"budget 0.2, over {idle_seconds:.0f} s")


def _one(name: str, unit: str, value: float, limit: str = "") -> Figure:
    return Figure(name, unit, [[value]], limit)


def weighed(plane: ControlPlane, uids: list[str], work: tuple[int, float], pid: int) -> Weighed:
    """Measure one enforcer; `work` is the number of assignments and the idle seconds."""
    count, seconds = work
    first = assign(plane, uids[0])
    wait_until(lambda: observed(plane) >= first, "the first assignment", WAIT_SECONDS)
    fresh, last = Weight.of(pid), first
    for number in range(count):
        last = assign(plane, uids[number % len(uids)])
    wait_until(lambda: observed(plane) >= last, "the last assignment", WAIT_SECONDS)
    progress(f"  {last} assignments; now idle for {seconds:.0f} s")
    busy = Weight.of(pid)
    time.sleep(seconds)
    return Weighed(fresh, busy, Weight.of(pid), last - first, seconds)
