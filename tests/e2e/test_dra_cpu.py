"""Numapin beside the DRA driver for CPUs, both on a real kubelet with a real container runtime."""

from collections.abc import Iterator
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_lab.cluster import Cluster
from numapin_lab.components.build import provide
from numapin_lab.components.catalog import DRA_DRIVER
from numapin_lab.node.cgroups import below
from numapin_lab.node.dra_driver import DEVICE_CLASS, NAME, DraDriver
from numapin_lab.processes.ports import choose
from numapin_lab.running_lab import BUSY, RunningLab, eventually, pod, policy

CLAIMED, REST = CpuSet.parse("1"), CpuSet.parse("0")
EVERYTHING = CpuSet.parse("0-1")

pytestmark = pytest.mark.from_source("the driver is a process of the machine, not of that node")


@pytest.fixture(scope="module")
def dra_driver(cluster: Cluster) -> Iterator[DraDriver]:
    """The driver, which gives away CPU 1."""
    program = provide([DRA_DRIVER.name])[DRA_DRIVER.name].path
    options = ("--cpu-device-mode=individual", "--reserved-cpus=0")
    [port] = choose(1)
    driver = DraDriver(cluster.kubelet, program, port, options)
    driver.start()
    yield driver
    driver.stop()


@pytest.fixture
def node(lab: RunningLab, dra_driver: DraDriver) -> Iterator[RunningLab]:
    """The lab with a class of the driver's devices, and no claim before and after the test."""
    lab.apply(DEVICE_CLASS)
    yield lab
    lab.clear()
    lab.kubectl("delete", "resourceclaims", "--all", "--wait")


def _claim(name: str) -> dict[str, Any]:
    requests = [{"name": "cpus", "exactly": {"deviceClassName": NAME, "count": 1}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": requests}},
    }


def _claiming(name: str) -> dict[str, Any]:
    """A Guaranteed pod that uses the claim of its name, as the driver's documentation shows it."""
    made = pod(name, BUSY, cpu="1")
    made["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": name}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
    return made


def _given(lab: RunningLab) -> dict[str, tuple[str, bool | None]]:
    return {one.pod: (str(one.cpus), one.claimed) for one in _entries(lab)}


def _entries(lab: RunningLab) -> tuple[ContainerAssignment, ...]:
    return lab.wait_in_force().spec.containers


def _exclusive(lab: RunningLab) -> dict[str, bool]:
    status = lab.wait_in_force().status
    assert status is not None
    return {one.pod_uid: one.exclusive for one in status.containers}


def test_claimed_cpus_leave_the_pool_and_come_back(node: RunningLab) -> None:
    node.apply(policy(), pod("neighbour", BUSY))
    node.wait_running("neighbour")
    eventually(lambda: node.allowed("neighbour"), EVERYTHING)

    node.apply(_claim("claiming"), _claiming("claiming"))
    node.wait_running("claiming")
    eventually(lambda: _given(node), {"claiming": ("1", True)})
    uid = node.pod("claiming")["metadata"]["uid"]
    eventually(lambda: _exclusive(node), {uid: True})
    assert node.allowed("claiming") == CLAIMED
    assert node.allowed("neighbour") == REST
    assert _quota(node, "claiming") > 0, "the CFS limit is the kubelet's"
    assert not [one for one in node.events("claiming") if one["reason"] == "CPUsAssigned"]

    node.apply(pod("late", cpu="1"))
    node.wait_running("late")
    refused = node.wait_in_force().spec.refused
    assert [(one.pod, one.reason) for one in refused] == [("late", "NotEnoughCPUs")]
    eventually(lambda: node.allowed("late"), REST)

    node.delete("pod", "claiming", "late")
    eventually(lambda: _given(node), {})
    eventually(lambda: node.allowed("neighbour"), EVERYTHING)


def test_claims_survive_restarts_of_operator_and_enforcer(node: RunningLab) -> None:
    node.apply(policy(), _claim("claiming"), _claiming("claiming"), pod("neighbour", BUSY))
    node.wait_running("claiming", "neighbour")
    eventually(lambda: _given(node), {"claiming": ("1", True)})
    for name in ("operator", "enforcer"):
        before = node.wait_in_force().metadata["generation"]
        node.kill(name)
        node.restart(name)
        assert _given(node) == {"claiming": ("1", True)}
        assert node.wait_in_force().metadata["generation"] == before
        eventually(lambda: node.allowed("neighbour"), REST)
        assert node.allowed("claiming") == CLAIMED


def _quota(lab: RunningLab, name: str) -> int:
    cpuset = lab.container(name)
    for root in lab.cluster.runtime.cgroup.folders():
        for folder in below(root):
            if folder.name == cpuset.name and (folder / "cpu.cfs_quota_us").exists():
                return int((folder / "cpu.cfs_quota_us").read_text())
    raise LookupError(cpuset)


def test_a_claim_does_not_take_the_cpu_of_an_exclusive_container(node: RunningLab) -> None:
    """The driver does not know what numapin has given away; its pod cannot start meanwhile."""
    node.apply(policy(), pod("owner", cpu="1"))
    node.wait_running("owner")
    eventually(lambda: _exclusive(node), {node.pod("owner")["metadata"]["uid"]: True})
    node.apply(_claim("claiming"), _claiming("claiming"))

    def refused() -> bool | list[str]:
        messages = [one["message"] for one in node.events("claiming")]
        return any("cpuset.cpus" in each for each in messages) or messages

    eventually(refused, True)
    eventually(lambda: node.allowed("owner"), CLAIMED)
    assert _given(node) == {"owner": ("1", None)}
