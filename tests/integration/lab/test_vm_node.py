"""A lab whose node is a virtual machine: it comes, goes on, is brought back, and goes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from numapin_lab.cluster import VmCluster
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import VM_PARTS, LabFolder
from numapin_lab.processes.daemons import kill, marked
from numapin_lab.vm.pulse import Pulse
from numapin_lab.vm.running_lab import RunningVmLab
from numapin_lab.vm.snapshot import provide_snapshot

WITHOUT = frozenset({"operator", "enforcer"})
PARTS = [part for part in VM_PARTS if part not in WITHOUT]


@pytest.fixture(scope="module")
def cluster(vm_lab: LabFolder) -> VmCluster:
    found = vm_lab.up(WITHOUT)
    assert isinstance(found, VmCluster)
    return found


def pids(folder: LabFolder) -> dict[str, int | None]:
    return {part.name: part.pid for part in folder.status()}


def command(folder: LabFolder, *arguments: str) -> subprocess.CompletedProcess[str]:
    name, *rest = arguments
    return subprocess.run(
        [sys.executable, "-m", "numapin_lab", name, "--dir", str(folder.path), *rest],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def in_guest(folder: LabFolder, *words: str) -> Sequence[str]:
    answer = command(folder, "guest", "--", *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_a_real_kubelet_joins_with_the_machines_cpus(cluster: VmCluster) -> None:
    node = cluster.api.get("/api/v1/nodes/numa")
    assert node["status"]["capacity"]["cpu"] == "8"
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://2")
    assert [one["address"] for one in node["status"]["addresses"]] == ["10.0.2.15", "numa"]


def test_commands_run_in_the_guest(cluster: VmCluster, vm_lab: LabFolder) -> None:
    assert in_guest(vm_lab, "cat", "/sys/devices/system/node/node1/cpulist") == ["4-7"]
    assert in_guest(vm_lab, "sh", "-c", "echo $(hostname) 'two  words'") == ["vm", "two", "words"]
    assert f"{Path.cwd()}/Makefile" in in_guest(vm_lab, "ls", f"/host{Path.cwd()}/Makefile")[0]
    failed = command(vm_lab, "guest", "--", "sh", "-c", "echo no >&2; exit 3")
    assert (failed.returncode, failed.stdout) == (3, "no\n")


def test_commands_arrive_while_orphans_end(cluster: VmCluster) -> None:
    """The shell that reads the line must not be told of them: `read` would lose part of a line."""
    machine, long = cluster.vm.machine, "#" * 3000
    machine("for i in $(seq 300); do (sleep $((i / 15)).$((i % 10)) &); done")
    for number in range(30):
        assert machine(f"echo {number} {long}", 30).split() == [str(number)]


def test_up_again_touches_nothing(cluster: VmCluster, vm_lab: LabFolder) -> None:
    before, kubelet = pids(vm_lab), in_guest(vm_lab, "cat", "/run/kubelet.pid")
    vm_lab.up(WITHOUT)
    assert pids(vm_lab) == before
    assert in_guest(vm_lab, "cat", "/run/kubelet.pid") == kubelet


def test_a_snapshot_is_made_once(cluster: VmCluster) -> None:
    before = cluster.snapshot.memory.stat()
    assert provide_snapshot(cluster.programs) == cluster.snapshot
    assert cluster.snapshot.memory.stat().st_mtime_ns == before.st_mtime_ns


def test_a_guest_that_ends_is_reported_with_its_console_and_started_again(
    cluster: VmCluster, vm_lab: LabFolder
) -> None:
    cluster.vm.machine("echo last words >/dev/console")
    with pytest.raises(LabError, match=r"the guest ended while running(.|\n)*last words"):
        cluster.vm.machine("echo o >/proc/sysrq-trigger; sleep 60")
    before = pids(vm_lab)
    vm_lab.up(WITHOUT)
    after = pids(vm_lab)
    assert after.pop("vm") != before.pop("vm")
    assert after == before
    assert in_guest(vm_lab, "hostname") == ["vm"]


def test_a_guest_that_stands_still_is_killed_and_the_console_says_why(
    cluster: VmCluster, vm_lab: LabFolder
) -> None:
    machine = cluster.vm.machine
    assert Pulse(machine).problem() == ""
    pid = machine.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    seen = Pulse(machine, still_seconds=2.0, between_seconds=0.1).watch(threading.Event())
    assert seen == "it has not answered for 2 s"
    with pytest.raises(LabError, match=r"has ended(.|\n)*stood still: it has not answered"):
        RunningVmLab(cluster).eventually(lambda: False, True)
    vm_lab.up(WITHOUT)
    assert in_guest(vm_lab, "hostname") == ["vm"]


def test_status_shows_pids_and_the_console(cluster: VmCluster, vm_lab: LabFolder) -> None:
    answer = command(vm_lab, "status")
    assert answer.returncode == 0, answer.stderr
    for name in PARTS:
        line = next(line for line in answer.stdout.splitlines() if line.split()[0] == name)
        assert line.split()[1:] == ["running", str(pids(vm_lab)[name]), f"{vm_lab.path}/{name}/log"]


def test_a_lab_of_another_kind_is_refused(cluster: VmCluster, tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text(
        (cluster.folder / "lab.json").read_text().replace(": true", ": false")
    )
    with pytest.raises(LabError, match="take the lab down"):
        LabFolder(tmp_path, vm=True).up(WITHOUT)


def test_down_leaves_nothing(cluster: VmCluster, vm_lab: LabFolder) -> None:
    pid = pids(vm_lab)["kube-scheduler"]
    assert pid is not None
    kill(pid)
    vm_lab.down()
    assert list(marked(vm_lab.path)) == []
    assert not cluster.state.run.exists()
    with pytest.raises(LabError, match="no virtual machine runs"):
        vm_lab.guest()
