"""From the kubelet's static managers to numapin and back, with NUMA nodes and cgroup v2.

8 CPUs: cores 0-1, 2-3 on NUMA node 0, 4-5, 6-7 on NUMA node 1; core 0-1 is reserved.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from numapin_cli.main import main
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.node_files import KUBELET_ROOT, kubelet_config
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.virtual_node import vm_up
from support.suite.left_out import before_release

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

RESERVED = {"reservedSystemCPUs": "0-1"}
STATIC: Mapping[str, Any] = {
    **RESERVED,
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "topologyManagerPolicy": "single-numa-node",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "50Mi"}}],
}
POLICY = policy(
    reserved={"cpus": "0-1"},
    topology={"policy": "SingleNUMANode"},
    memory={"policy": "Static", "reserved": [{"numaNode": 0, "memory": "50Mi"}]},
)
STATE_FILES = [f"{KUBELET_ROOT}/{name}_manager_state" for name in ("cpu", "memory")]
KINDS = "nodes,namespaces,pods,cpupolicies,nodeassignments,nodereports,nodetopologies"
OWN, SHARED = ("4-5", "1"), ("0-3,6-7", "0-1")


def restart_kubelet(lab: RunningVmLab, settings: Mapping[str, Any], cpu_state: str = "") -> None:
    """Restart the kubelet with other settings and without its states, or with this one."""
    config = yaml.safe_dump({**kubelet_config(lab.cluster.state.systemd), **settings})
    lab.machine.put(Path("/etc/kubernetes/kubelet.yaml"), config.encode())
    state = f"echo {shlex.quote(cpu_state)} >{STATE_FILES[0]}" if cpu_state else "true"
    script = f"stop-kubelet; rm -f {' '.join(STATE_FILES)}; {state}; start-kubelet"
    lab.machine(script, lab.patience_seconds)
    lab.eventually(lambda: set(lab.read(*STATE_FILES)) == set(STATE_FILES), True)


@pytest.fixture
def static_node(vm_lab: LabFolder) -> Iterator[RunningVmLab]:
    """A node whose kubelet has given CPUs 4-5 of NUMA node 1 to `owner`; numapin is not there.

    The CPUs 2-3 that a plan would give it were taken when it came.
    """
    try:
        lab = vm_up(vm_lab, {"operator", "enforcer"})
        restart_kubelet(lab, STATIC)
        lab.apply(pod("first", cpu="2"))
        lab.wait_running("first")
        lab.apply(pod("owner", cpu="2"), pod("neighbour"))
        lab.wait_running("owner", "neighbour")
        lab.delete("pod", "first")
        lab.eventually(lambda: has(lab, "neighbour")[0], SHARED[0])
        yield lab
    finally:
        vm_lab.down()


def has(lab: RunningVmLab, name: str) -> tuple[str, str]:
    """Effective CPUs and NUMA nodes of a container's cgroup."""
    group, _ = lab.look().of(lab.container_id(name))
    return group.cpus_effective, group.mems_effective


def check(lab: RunningVmLab, folder: Path, what: str = "--check") -> int:
    """`numapin migrate` with what the cluster has and the kubelet's states."""
    (folder / "now.json").write_text(json.dumps(lab.kubectl.get(KINDS, "-A")))
    for path, text in lab.read(*STATE_FILES).items():
        (folder / Path(path).name).write_text(text)
    known = ("--cluster", str(folder / "now.json"), "--kubelet-root-dir", str(folder))
    return main(["migrate", what, *known])


@before_release
def test_containers_keep_cpus_and_memory_there_and_back(
    static_node: RunningVmLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = static_node
    for agent in lab.cluster.agents:
        agent.start()
    lab.apply(POLICY)
    lab.wait(lambda: bool(lab.stalled("KubeletStaticPolicy")), "the conflict to be reported")
    lab.eventually(lambda: check(lab, tmp_path), 0)
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["default/owner", "main", "4-5", "keeps", "them"] in said

    restart_kubelet(lab, RESERVED)
    lab.eventually(lab.reported_exclusive, [True])
    status = lab.wait_in_force().status
    assert status is not None
    assert status.drift_count == 0
    assert (has(lab, "owner"), has(lab, "neighbour")) == (OWN, SHARED)

    capsys.readouterr()
    assert check(lab, tmp_path, "--back") == 0
    restart_kubelet(lab, STATIC, capsys.readouterr().out)
    lab.wait(lambda: bool(lab.stalled("KubeletStaticPolicy")), "the conflict to be reported")
    lab.delete("cpupolicy", "e2e")
    lab.eventually(lab.assignment, None)
    assert (has(lab, "owner"), has(lab, "neighbour")) == (OWN, SHARED)
    lab.delete("pod", "owner")
    lab.eventually(lambda: has(lab, "neighbour")[0], "0-7")
