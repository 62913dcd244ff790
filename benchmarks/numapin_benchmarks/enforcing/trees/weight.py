"""Memory of an enforcer after many assignments, and its CPU time while idle, beside a standby.

etcd, kube-apiserver, containerd and this machine's cgroups are real. The pods are cgroups with
sleeping threads that containerd does not know; the enforcer asks it for those with exclusive CPUs
again and again, less and less often. So what is idle is measured in two parts: just after the last
assignment, and then.
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from numapin_api.names import NAMESPACE
from numapin_benchmarks.enforcing.trees.cgroup_trees import ID_LENGTH, sleeping
from numapin_benchmarks.figures import Figure
from numapin_benchmarks.surroundings import CGROUPFS, progress
from numapin_client.login.in_cluster import SERVICE_ACCOUNT_DIR
from numapin_enforcer.cgroups.mounts import find_mounts
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import CONTROL_PLANE, RUNTIME
from numapin_lab.controlplane.api import AnswerError
from numapin_lab.controlplane.node_objects import read_node
from numapin_lab.controlplane.servers import ControlPlane, ControlPlanePorts
from numapin_lab.images.build import CHECKOUT
from numapin_lab.node.cgroups import MOUNTS, LabCgroup, below, hierarchies
from numapin_lab.node.containerd import Runtime
from numapin_lab.processes import usage
from numapin_lab.processes.daemons import wait_until
from numapin_lab.processes.ports import choose

NODE = "bench"
PATH = "/apis/numapin.io/v1beta1/nodeassignments"
WAIT_SECONDS = 60
THREADS = 8
"""In each container. All are looked at in turn: some at each resync."""


@dataclass(frozen=True)
class Weight:
    """Memory of a process; CPU time since its start, in user mode and in the kernel."""

    resident_mib: float
    peak_mib: float
    private_mib: float
    user_seconds: float
    system_seconds: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """The present values of a process."""
        return cls(
            usage.resident_mib(pid),
            usage.peak_mib(pid),
            usage.private_mib(pid),
            *usage.cpu_times(pid),
        )

    def cpu_seconds_since(self, before: Self) -> float:
        """CPU time since that moment."""
        user_seconds = self.user_seconds - before.user_seconds
        return user_seconds + self.system_seconds - before.system_seconds


def make_pods(root: str, count: int) -> list[str]:
    """Cgroups of `count` best-effort and Guaranteed pods, a sandbox and a container each."""
    uids = [str(uuid.uuid4()) for _ in range(count)]
    for number, uid in enumerate(uids):
        qos = "" if number % 2 else "besteffort/"
        for container in (secrets.token_hex(32), secrets.token_hex(32)):
            make_cgroup(f"{root}/kubepods/{qos}pod{uid}/{container}")
    return uids


def containers(root: str) -> list[Path]:
    """What `make_pods` has made for containers and sandboxes, in the cpuset hierarchy."""
    folder = find_mounts(CGROUPFS).cpuset / root.strip("/")
    return [one for one in sorted(below(folder)) if len(one.name) == ID_LENGTH]


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
        plane.kubectl("apply", "--server-side", "-k", str(CHECKOUT / "crds"))
        plane.kubectl("create", "namespace", NAMESPACE)  # for the Lease of the node
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
    pools = {"reserved": "0", "shared": "0"}
    return write(plane, {"pools": pools, "containers": [line(uid, cpus="1", exclusive=True)]})


def line(uid: str, **more: Any) -> dict[str, Any]:
    """What a spec says of the container `main` of a pod."""
    return {"podUID": uid, "namespace": "default", "pod": uid, "container": "main", **more}


def write(plane: ControlPlane, spec: Mapping[str, Any]) -> int:
    """Write the spec of the NodeAssignment, as the operator does; returns its generation."""
    body: dict[str, Any] = {"apiVersion": "numapin.io/v1beta1", "kind": "NodeAssignment"}
    body |= {"metadata": {"name": NODE}, "spec": spec}
    query = "fieldManager=bench&force=true"
    answer = plane.api.request("PATCH", f"{PATH}/{NODE}?{query}", body)
    return int(answer["metadata"]["generation"])


def status(plane: ControlPlane) -> dict[str, Any]:
    """What the enforcer has reported; empty before its first report."""
    found: dict[str, Any] = (read_node(plane.api, NODE) or {}).get("status") or {}
    return found


def observed(plane: ControlPlane) -> int:
    """The generation that the enforcer has reported; 0 before its first report."""
    return int(status(plane).get("observedGeneration", 0))


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
def enforcer(plane: ControlPlane, runtime: Runtime, folder: Path, *options: str) -> Iterator[int]:
    """Run an enforcer with the settings and the login of the DaemonSet; yields its process id.

    A kubeconfig would take 1.1 MiB more: a pod loads no parser of YAML.
    """
    command = program("numapin_enforcer", runtime, folder)
    command += [f"--cri-socket={runtime.socket}", f"--health-address=127.0.0.1:{choose(1)[0]}"]
    command += options
    account, environment = service_account(plane, folder)
    mounting = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1"; shift; exec "$@"']
    command = [*mounting, str(account), str(SERVICE_ACCOUNT_DIR), *command]
    with running(command, environment, folder / "enforcer.log") as pid:
        yield pid


def program(module: str, runtime: Runtime, folder: Path) -> list[str]:
    """The command for the enforcer or the standby, which have these settings in common."""
    options = [f"--node-name={NODE}", f"--cgroup-root={runtime.cgroup.path}"]
    options += [f"--state-dir={folder / 'state'}", f"--run-dir={folder / 'run'}"]
    return [sys.executable, "-m", module, *options, f"--kubelet-state-dir={folder}"]


@contextmanager
def running(command: list[str], environment: dict[str, str], log: Path) -> Iterator[int]:
    """Run a program; yields its process id."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(WAIT_SECONDS)


@dataclass(frozen=True)
class Weighed:
    """A process when it was fresh, after many assignments, and twice after some idleness."""

    fresh: Weight
    busy: Weight
    just_idle: Weight
    idle: Weight


def measure(counts: Sequence[int], assignments: int, idle_seconds: float) -> Iterator[Figure]:
    """Measure memory and CPU time of an enforcer and its standby with each number of pods."""
    for count in counts:
        with (
            tempfile.TemporaryDirectory(prefix="numapin-bench-") as name,
            parts(Path(name)) as (plane, runtime),
        ):
            root = runtime.cgroup.path
            uids = make_pods(root, count)
            with (
                sleeping(containers(root), THREADS),
                enforcer(plane, runtime, Path(name)) as pid,
            ):
                assign_first(plane, uids[0])
                standby = program("numapin_enforcer.standby", runtime, Path(name))
                with running(standby, dict(os.environ), Path(name) / "standby.log") as standby_pid:
                    found = weighed(plane, uids, (assignments, idle_seconds), (pid, standby_pid))
        yield from figures(f"enforcer, {count} pods", found[0], (assignments, idle_seconds))
        yield from standby_figures(f"standby, {count} pods", found[1], idle_seconds)


def figures(subject: str, found: Weighed, work: tuple[int, float]) -> Iterator[Figure]:
    """Everything of an enforcer; `work` is the number of assignments and the idle seconds."""
    assignments, seconds = work
    yield _one(f"{subject}: RSS when fresh", "MiB", found.fresh.resident_mib)
    limit = f"budget 50, after {assignments} assignments"
    yield _one(f"{subject}: RSS", "MiB", found.idle.resident_mib, limit)
    yield _one(f"{subject}: private memory", "MiB", found.idle.private_mib)
    yield _one(f"{subject}: RSS at its peak", "MiB", found.idle.peak_mib)
    each = found.busy.cpu_seconds_since(found.fresh) / max(1, assignments) * 1000
    yield _one(f"{subject}: CPU for one assignment", "ms", each)
    percent = found.just_idle.cpu_seconds_since(found.busy) / seconds * 100
    yield _one(f"{subject}: first {seconds:.0f} s idle, of a CPU", "%", percent, "budget 0.2")
    before, after = found.just_idle, found.idle
    limit = f"budget 0.2, over {seconds:.0f} s"
    percent = after.cpu_seconds_since(before) / seconds * 100
    yield _one(f"{subject}: idle, of a CPU", "%", percent, limit)
    percent = (after.system_seconds - before.system_seconds) / seconds * 100
    yield _one(f"{subject}: the kernel's part of that", "%", percent)


def standby_figures(subject: str, found: Weighed, seconds: float) -> Iterator[Figure]:
    """Memory and CPU time of a standby beside an enforcer that runs."""
    yield _one(f"{subject}: RSS", "MiB", found.idle.resident_mib)
    yield _one(f"{subject}: private memory", "MiB", found.idle.private_mib)
    percent = found.idle.cpu_seconds_since(found.just_idle) / seconds * 100
    yield _one(f"{subject}: of a CPU", "%", percent)


def _one(name: str, unit: str, value: float, limit: str = "") -> Figure:
    return Figure(name, unit, [[value]], limit)


def assign_first(plane: ControlPlane, uid: str) -> None:
    """Give the second CPU to a pod, and wait until that is reported."""
    first = assign(plane, uid)
    wait_until(lambda: observed(plane) >= first, "the first assignment", WAIT_SECONDS)


def weighed(
    plane: ControlPlane, uids: list[str], work: tuple[int, float], pids: Sequence[int]
) -> list[Weighed]:
    """Measure some processes; `work` is the number of assignments and the idle seconds."""
    count, seconds = work
    moments, last = [[Weight.of(pid) for pid in pids]], 0
    for number in range(1, count + 1):
        last = assign(plane, uids[number % len(uids)])
    wait_until(lambda: observed(plane) >= last, "the last assignment", WAIT_SECONDS)
    moments.append([Weight.of(pid) for pid in pids])
    progress(f"  {count} assignments; now idle for {2 * seconds:.0f} s")
    for _ in range(2):
        time.sleep(seconds)
        moments.append([Weight.of(pid) for pid in pids])
    return [Weighed(*one) for one in zip(*moments, strict=True)]
