"""A container runtime with a CPU affinity of its own, as `CPUAffinity=` of its unit gives it one.

Since Linux 6.2 a container keeps that of its runtime, with runc up to 1.2.6 or 1.3.0; the lab has
1.1.5. Run it with `make newer-kernel`: by default the virtual machine has Linux 6.1.

8 CPUs: 0-3 on NUMA node 0, 4-7 on NUMA node 1; 0-1 are reserved.
"""

import os

import pytest

from numapin_api.conditions.model import Condition
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.kernel import VARIABLE
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.virtual_node import vm_up

pytestmark = [
    pytest.mark.timeout(1800),  # for a machine with much else to do
    pytest.mark.run_by("make newer-kernel", VARIABLE in os.environ),
]

POLICY = policy(reserved={"cpus": "0-1"}, topology={"policy": "SingleNUMANode"})
SET_AFFINITY = 'for pid in $(pidof containerd); do taskset -ap "{mask:x}" $pid; done'
SOME = 0b110011
"""CPUs 0-1 and 4-5."""


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> RunningVmLab:
    lab = vm_up(vm_lab)
    lab.apply(POLICY)
    lab.wait_in_force()
    lab.machine(SET_AFFINITY.format(mask=SOME))
    return lab


def ready(lab: RunningVmLab) -> Condition:
    assignment = lab.assignment()
    assert assignment is not None
    assert assignment.status is not None
    return next(one for one in assignment.status.conditions if one.type == "Ready")


def is_ready(lab: RunningVmLab) -> tuple[str, str]:
    """Status and reason of Ready."""
    found = ready(lab)
    return found.status, found.reason


def start(lab: RunningVmLab, name: str, cpu: str | None = None) -> None:
    lab.apply(pod(name, cpu=cpu))
    lab.wait_running(name)


def may_use(lab: RunningVmLab, **cpus: str) -> None:
    """Wait until the kernel lets the processes of pods use these CPUs."""
    lab.eventually(lambda: {name: str(lab.allowed(name)) for name in cpus}, cpus)


def test_a_container_that_inherited_the_affinity_is_named(node: RunningVmLab) -> None:
    start(node, "web")
    may_use(node, web="0-1,4-5")
    start(node, "wide", "4")
    may_use(node, wide="4-5", web="0-1")
    node.eventually(lambda: is_ready(node), ("False", "InheritedAffinity"))
    said = ready(node).message
    assert "container default/wide/main may use only CPU 4-5 of 4-7" in said
    assert "it has inherited the CPU affinity 0-1,4-" in said
