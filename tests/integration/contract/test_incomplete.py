"""On a cluster or a node that lacks something, the last line of each log says what to do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from numapin_lab.components.build import provide
from numapin_lab.components.catalog import COMPONENTS
from numapin_lab.controlplane.servers import ControlPlane
from numapin_lab.controlplane.service_accounts import ServiceAccount, log_in
from numapin_lab.errors import LabError
from numapin_lab.processes.ports import choose
from numapin_lab.running_lab import eventually
from support.real.installing.own_plane import own_plane

NODE = "node-1"
ENFORCER = "numapin_enforcer"
OPERATOR = "numapin_operator"
CGROUP_V1 = Path("/sys/fs/cgroup/cpuset/cpuset.cpus")

RIGHTLESS = ServiceAccount("default", "rightless")


@pytest.fixture(scope="module")
def bare(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server on which nothing was installed."""
    with own_plane(tmp_path_factory.mktemp("bare"), control_plane.programs) as plane:
        yield plane


def last_line(log: Path) -> str:
    """What `kubectl logs --tail=1` shows."""
    return (log.read_text().splitlines() or [""])[-1]


@contextmanager
def running(program: str, kubeconfig: Path, folder: Path, *options: str) -> Iterator[Path]:
    """Run a program on this machine, which is no node; yields its log."""
    given = [f"--kubeconfig={kubeconfig}", "--health-address=127.0.0.1:0", *options]
    if program == ENFORCER:
        given += [f"--node-name={NODE}", f"--cri-socket={folder / 'none'}", "--cgroup-root=/none"]
        given += [f"--{name}-dir={folder / name}" for name in ("state", "run", "kubelet-state")]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", program, *given],
            stdout=output,
            stderr=output,
            env=os.environ | {"KUBECONFIG": ""},
        )
    try:
        yield log
    finally:
        process.terminate()
        assert process.wait() == 0, log.read_text()[-4000:]


@pytest.mark.parametrize("program", [OPERATOR, ENFORCER])
def test_without_the_crds_the_log_says_how_to_install_them(
    bare: ControlPlane, program: str, tmp_path: Path
) -> None:
    with running(program, bare.kubeconfig, tmp_path) as log:
        remedy = "apply the CRDs of this version first: kubectl apply -k crds"
        eventually(lambda: remedy in last_line(log), True)


@pytest.mark.parametrize("program", [OPERATOR, ENFORCER])
def test_without_rights_the_log_names_one_and_says_what_to_apply(
    bare: ControlPlane, program: str, tmp_path: Path
) -> None:
    account = ("serviceaccount", RIGHTLESS.name, "--dry-run=client", "--output=yaml")
    bare.kubectl("apply", "-f", "-", text=bare.kubectl("create", *account))
    kubeconfig = log_in(bare, RIGHTLESS, tmp_path / "login")
    with running(program, kubeconfig, tmp_path) as log:
        remedy = "the role lacks this right: apply the manifests of this version again"
        eventually(lambda: remedy in last_line(log), True)
        assert "cannot list resource" in last_line(log)


@pytest.mark.skipif(not CGROUP_V1.exists(), reason="this machine has cgroup v2")
@pytest.mark.skipif(
    COMPONENTS["kubelet"].pinned() < (1, 35, 0), reason="this kubelet starts with cgroup v1"
)
def test_a_kubelet_refuses_cgroup_v1_for_the_setting_that_the_enforcer_names(
    tmp_path: Path,
) -> None:
    kubelet = provide(["kubelet"])["kubelet"].path
    settings = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    ports = dict(zip(("port", "healthzPort"), choose(2), strict=True))
    (tmp_path / "config").write_text(yaml.safe_dump({**settings, **ports, "readOnlyPort": 0}))
    folders = [f"--root-dir={tmp_path / 'kubelet'}", f"--cert-dir={tmp_path / 'pki'}"]
    command = [str(kubelet), f"--config={tmp_path / 'config'}", *folders]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode != 0
    assert "kubelet is configured to not run on a host using cgroup v1" in refused.stderr
    assert not (tmp_path / "kubelet" / "cpu_manager_state").exists()


@pytest.mark.skipif(not CGROUP_V1.exists(), reason="this machine has cgroup v2")
def test_a_node_without_a_kubelet_says_which_setting_cgroup_v1_needs(
    bare: ControlPlane, tmp_path: Path
) -> None:
    bare.kubectl("apply", "--server-side", "-k", str(Path(__file__).parents[3] / "crds"))
    eventually(lambda: _assign(bare), True)
    with running(ENFORCER, bare.kubeconfig, tmp_path):
        shown = ("get", "nodeassignments.v1alpha1.numapin.io", NODE, "--output=wide")
        wanted = ("KubepodsNotFound", "start the kubelet", "failCgroupV1: false")
        eventually(lambda: [one in _conditions(bare) for one in wanted], [True] * 3)
        assert "failCgroupV1: false" in bare.kubectl(*shown)


def _assign(plane: ControlPlane) -> bool:
    """Create the node's assignment; False while the API server does not serve its kind yet."""
    spec = {
        "policy": {"name": "test", "generation": 1},
        "pools": {"reserved": "0", "shared": "0"},
    }
    kind = {"apiVersion": "numapin.io/v1beta1", "kind": "NodeAssignment"}
    body = kind | {"metadata": {"name": NODE}, "spec": spec}
    try:
        plane.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump(body))
    except LabError:
        return False
    return True


def _conditions(plane: ControlPlane) -> str:
    return plane.kubectl("get", "nodeassignment", NODE, "--output=jsonpath={.status.conditions}")
