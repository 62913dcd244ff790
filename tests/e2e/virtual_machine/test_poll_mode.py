"""A program with a pinned thread on each CPU follows its CPUs on a real node with cgroup v2.

8 CPUs: 0-3 on NUMA node 0, 4-7 on NUMA node 1; 0-1 are reserved.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from numapin_api import names
from numapin_campaigns.workload.notice import annotating
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.telling.poll_mode import build_poll_mode, poll_mode_pod
from support.real.virtual_node import vm_up
from support.suite.left_out import before_release

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

RULES: dict[str, Any] = {"reserved": {"cpus": "0-1"}, "topology": {"policy": "SingleNUMANode"}}
LONG, NONE = ({"notice": notice} for notice in ("60s", "0s"))


@pytest.fixture
def lab(vm_lab: LabFolder, tmp_path: Path) -> RunningVmLab:
    """The node with the policy, the program in a ConfigMap, and CPUs 2-3 taken."""
    lab, program = vm_up(vm_lab), build_poll_mode(tmp_path)
    lab.kubectl("create", "configmap", program.name, f"--from-file={program}")
    lab.apply(policy(dynamic=LONG, **RULES), pod("gap", cpu="2"))
    lab.wait_running("gap")
    lab.eventually(lambda: given(lab), {"gap": "2-3"})
    return lab


def given(lab: RunningVmLab) -> dict[str, str]:
    """The CPUs of each pod by the NodeAssignment."""
    assignment = lab.assignment()
    return {one.pod: str(one.cpus) for one in assignment.spec.containers} if assignment else {}


def some_leave(lab: RunningVmLab) -> bool:
    """Whether the pod has been told: the operator that tells it is killed then."""
    told = lab.pod("owner")["metadata"].get("annotations", {}).get(names.CPUS_ANNOTATION, "")
    return "leaving" in told


def resize(lab: RunningVmLab, name: str, cpu: str) -> None:
    amounts = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    lab.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(patch))


def printed(lab: RunningVmLab) -> dict[str, Any]:
    """The last line that the program has printed."""
    lines = lab.machine("tail -n 1 /run/pods/default_owner_*/main/0.log").splitlines()
    found: dict[str, Any] = json.loads(lines[-1].split(" ", 3)[3])
    return found


def pinned(lab: RunningVmLab) -> list[str]:
    """The CPUs that each lcore may use, as the kernel says."""
    (pid,) = lab.look().of(lab.container_id("owner"))[0].pids
    files = lab.read(f"/proc/{pid}/task/*/status")
    return sorted(
        line.split()[1]
        for file, text in files.items()
        if f"/task/{pid}/" not in file
        for line in text.splitlines()
        if line.startswith("Cpus_allowed_list")
    )


@before_release
def test_lcores_are_off_cpus_before_these_leave_and_the_first_stays(lab: RunningVmLab) -> None:
    with annotating(lab) as operator:
        lab.apply(poll_mode_pod("owner", cpu="2"))
        lab.wait_running("owner")
        lab.eventually(lambda: printed(lab), {"main": 4, "lcores": [4, 5], "lost": 0})
        resize(lab, "owner", "4")
        lab.eventually(lambda: printed(lab), {"main": 4, "lcores": [4, 5, 6, 7], "lost": 0})
        lab.eventually(lambda: pinned(lab), ["4", "5", "6", "7"])
        resize(lab, "owner", "1")
        lab.wait(lambda: some_leave(lab), "CPUs to be about to leave")
        operator.kill()  # so that they do not leave, however long the rest takes
        lab.eventually(lambda: printed(lab), {"main": 4, "lcores": [4], "lost": 0})
        assert str(lab.allowed("owner")) == "4-7"
        lab.apply(policy(dynamic=NONE, **RULES))
        operator.start()
        operator.wait_ready()
        lab.eventually(lambda: str(lab.allowed("owner")), "4")
        lab.eventually(lambda: pinned(lab), ["4"])
        assert printed(lab) == {"main": 4, "lcores": [4], "lost": 0}
    (status,) = lab.pod("owner")["status"]["containerStatuses"]
    assert status["restartCount"] == 0
