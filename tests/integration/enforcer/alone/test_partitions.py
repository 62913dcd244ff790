"""A node that cannot have partitions says so, and keeps CPUs apart by cpusets."""

import os

import pytest

from numapin_lab.node.played_kubelet import Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import CPUSET, VERSION, cpus_of
from support.real.waiting import eventually

HAS_PARTITIONS = next(CPUSET.glob("*/cpuset.cpus.exclusive"), None) is not None


@pytest.mark.skipif(HAS_PARTITIONS, reason="this kernel makes partitions of containers")
@pytest.mark.parametrize("kind", ["Partition", "IsolatedPartition"])
async def test_partitions_are_refused_with_the_kernels_version_and_the_cpuset_stays(
    node: Node, exclusive: tuple[Pod, str], kind: str
) -> None:
    pod, cgroup = exclusive
    entry = assigned(pod.uid, "main", "1")
    node.assign(spec(entry, shared="0", isolation=kind))
    await eventually(lambda: node.condition("Stalled")[1] == "PartitionsUnsupported")
    message = node.condition("Ready")[2]
    assert f"this node has cgroup v{VERSION}, Linux {os.uname().release}" in message
    assert "cgroup v2 and Linux 6.7 or newer" in message
    assert node.condition("Ready")[:2] == ("False", "PartitionsUnsupported")
    assert node.reports_exclusive()
    assert node.status["isolation"]["partitions"] == ""
    assert cpus_of(cgroup) == "1"
    await node.applied(spec(entry, shared="0"))
