"""From the kubelet's static policy to numapin and back, while exclusive containers run.

The kubelet is restarted as an administrator does it; a sampler reads the effective CPUs of every
cgroup each millisecond.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.recording.recording import Recording, recording, seconds_shared
from numapin_cli.main import main
from numapin_lab.installed.manifests import wait_rolled_out
from numapin_lab.installed.running import InstalledLab, running
from numapin_lab.lifecycle import LabFolder
from numapin_lab.node.kubelet import Kubelet
from numapin_lab.processes.daemons import stop
from numapin_lab.running_lab import RunningLab, eventually, pod, policy

# Not reservedSystemCPUs: that CPU would not be allocatable, with no room for numapin's pods.
RESERVED: Mapping[str, Any] = {"kubeReserved": {"cpu": "200m"}}
STATIC: Mapping[str, Any] = {
    **RESERVED,
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "50Mi"}}],
}
STATE_FILES = ("cpu_manager_state", "memory_manager_state")
OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")
KINDS = "nodes,namespaces,pods,cpupolicies,nodeassignments,nodereports,nodetopologies"
AGENTS = frozenset({"operator", "enforcer"})


@pytest.fixture
def static_lab(root: None, numapin: str, tmp_path: Path) -> Iterator[RunningLab]:
    """A lab whose kubelet has given CPU 1 to `owner`; `neighbour` has the other one.

    numapin is installed and has no policy.
    """
    folder = LabFolder(tmp_path / "lab", pods=numapin == "pods")
    try:
        lab = running(folder.up(without=AGENTS, kubelet=STATIC))
        lab.apply(pod("neighbour"), pod("owner", cpu="1"))
        lab.wait_running("owner", "neighbour")
        eventually(lambda: lab.allowed("neighbour"), SHARED)
        install(lab)
        yield lab
    finally:
        folder.down()


def install(lab: RunningLab) -> None:
    """Start numapin; the enforcer is not ready before the kubelet's policy is none."""
    if isinstance(lab, InstalledLab):
        lab.kubectl("apply", "-k", str(lab.cluster.overlay))
        wait_rolled_out(lab.cluster.api, lab.kubectl, only="numapin-operator")
        return
    for agent in lab.cluster.agents:
        agent.start()
    lab.cluster.standby.start()


def restart_kubelet(lab: RunningLab, settings: Mapping[str, Any], cpu_state: str = "") -> Kubelet:
    """Restart the kubelet with other settings and without its states, or with this one."""
    kubelet = replace(lab.cluster.kubelet, settings=settings)
    pid = kubelet.daemon.pid()
    assert pid is not None
    stop(pid, 10)
    for name in STATE_FILES:
        (kubelet.root / name).unlink()
    if cpu_state:
        (kubelet.root / STATE_FILES[0]).write_text(cpu_state)
    kubelet.start()
    eventually((kubelet.root / STATE_FILES[0]).exists, True)
    return kubelet


def check(lab: RunningLab, file: Path, what: str = "--check") -> int:
    """`numapin migrate` with what the cluster has and the kubelet's states."""
    file.write_text(json.dumps(lab.kubectl.get(KINDS, "-A")))
    known = ("--cluster", str(file), "--kubelet-root-dir", str(lab.cluster.kubelet.root))
    return main(["migrate", what, *known])


def shared_seconds(record: Recording, ids: list[str]) -> dict[tuple[str, str], float]:
    """How long each two of these containers could run on one CPU."""
    return {
        (one, other): seconds_shared(record.groups[one], record.groups[other], OWN | SHARED)
        for one, other in combinations(ids, 2)
    }


def moves(record: Recording, container: str) -> list[CpuSet]:
    """Each set that the container had, in order."""
    return [one.cpus for one in record.groups[container]]


def conflict(lab: RunningLab) -> None:
    """Wait until the enforcer reports that the kubelet pins containers itself."""
    lab.wait(lambda: bool(lab.stalled("KubeletStaticPolicy")), "the conflict to be reported")


def starts_off_the_exclusive_cpu(lab: RunningLab, name: str) -> str:
    """Start a BestEffort pod, and return its container's id."""
    lab.apply(pod(name))
    lab.wait_running(name)
    assert lab.allowed(name) == SHARED
    return lab.container_id(name)


def to_numapin(lab: RunningLab, file: Path) -> None:
    """Take over from the kubelet.

    The policy reserves the CPU that the kubelet has given away, so that a new plan would move it.
    """
    lab.apply(policy(reserved={"cpus": str(OWN)}))
    conflict(lab)
    eventually(lambda: check(lab, file), 0)
    restart_kubelet(lab, RESERVED)
    eventually(lab.reported_exclusive, [True])
    lab.wait_in_force()


def back(lab: RunningLab, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Give the node back to the kubelet."""
    capsys.readouterr()
    assert check(lab, file, "--back") == 0
    restart_kubelet(lab, STATIC, capsys.readouterr().out)
    conflict(lab)
    assert check(lab, file) == 0
    lab.delete("cpupolicy", "e2e")
    eventually(lab.assignment, None)


def test_to_numapin_and_back_no_container_moves_and_none_shares(
    static_lab: RunningLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, file = static_lab, tmp_path / "now.json"
    ids = [lab.container_id(name) for name in ("owner", "neighbour")]
    with recording(lab.kubepods) as record:
        to_numapin(lab, file)
        assert "default/owner main  1  keeps them until it ends" in capsys.readouterr().out
        ids.append(starts_off_the_exclusive_cpu(lab, "late"))
        back(lab, file, capsys)
        ids.append(starts_off_the_exclusive_cpu(lab, "later"))
    assert [moves(record, one) for one in ids[:2]] == [[OWN], [SHARED]]
    of_owner = {pair: each for pair, each in shared_seconds(record, ids).items() if ids[0] in pair}
    assert set(of_owner.values()) == {0.0}
    assert record.quality["samples"] > 1000

    lab.delete("pod", "owner")
    eventually(lambda: lab.allowed("neighbour"), OWN | SHARED)
