"""Pods start and end on a real kubelet; the kernel shows what numapin did."""

import os

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import NodeAssignment
from numapin_lab.running_lab import BUSY, KUBECTL_TIMEOUT, RunningLab, eventually, pod, policy
from support.suite.left_out import BEFORE_RELEASE

OWN, SHARED = CpuSet.parse("1"), CpuSet.parse("0")
EVERYTHING = CpuSet.parse("0-1")
FIRST_ACTS = 20 if BEFORE_RELEASE in os.environ else 8

NO_REALTIME = pytest.mark.from_source(
    "on cgroup v1 a pod gets no real-time priority, so on busy CPUs a container may begin before "
    "it is pinned (docs/enforcing.md)"
)


def _exclusive(assignment: NodeAssignment) -> dict[str, tuple[str, bool]]:
    status = assignment.status
    assert status is not None
    return {one.pod_uid: (str(one.cpus), one.exclusive) for one in status.containers}


def test_a_pod_gets_an_exclusive_cpu_and_all_others_leave_it(lab: RunningLab) -> None:
    lab.apply(policy(), pod("neighbour", BUSY))
    lab.wait_running("neighbour")
    lab.wait_in_force()
    assert lab.allowed("neighbour") == EVERYTHING

    lab.apply(pod("owner", cpu="1"))
    lab.wait_running("owner")
    uid = lab.pod("owner")["metadata"]["uid"]
    eventually(lambda: _exclusive(lab.wait_in_force()), {uid: ("1", True)})

    assert lab.allowed("owner") == OWN
    assert lab.allowed("neighbour") == SHARED
    decided = lab.kubectl("get", "nodeassignments", lab.node).splitlines()[1].split()
    assert decided[1:5] == ["e2e", "Static", "0", "0"]
    reported = lab.kubectl("get", "nodereports", lab.node).splitlines()[1].split()
    assert reported[1:7] == ["1", "0", "0", "0", "True", "Enforced"]
    assert reported[-1], "the age"


@pytest.mark.from_source("numapin's own requests leave room for one whole CPU of two")
def test_a_pod_that_does_not_fit_gets_an_event_with_the_numbers_and_runs_shared(
    lab: RunningLab,
) -> None:
    lab.apply(policy(), pod("first", cpu="1"))
    lab.wait_running("first")
    lab.apply(pod("second", cpu="1"))
    lab.wait_running("second")
    refused = lab.wait_in_force().spec.refused
    assert [(one.pod, one.reason) for one in refused] == [("second", "NotEnoughCPUs")]
    assert "wanted 1 CPU, none free; free on NUMA node 0: 0 CPUs" in refused[0].message

    def noted() -> list[bool]:
        events = [one for one in lab.events("second") if one["reason"] == "NotEnoughCPUs"]
        return [one["type"] == "Warning" and refused[0].message in one["message"] for one in events]

    eventually(noted, [True])
    assert lab.allowed("first") == OWN
    assert lab.allowed("second") == SHARED

    lab.delete("pod", "first")
    eventually(lambda: lab.allowed("second"), EVERYTHING)
    eventually(lambda: _exclusive(lab.wait_in_force()), {})
    status = lab.wait_in_force().status
    assert status is not None
    assert status.pools is not None
    assert status.pools.shared == EVERYTHING


def test_a_pod_that_the_kubelet_refuses_never_gets_cpus(lab: RunningLab) -> None:
    """It names its node itself, so that no scheduler looks for room; an exclusive CPU is free.

    It is told that it waits only if the operator sees it before the kubelet refuses it.
    """
    large = pod("large", BUSY)
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1500m"}}
    lab.apply(policy(), large)
    lab.wait_running("large")
    before = lab.wait_in_force().metadata["generation"]
    by_hand = pod("by-hand", cpu="1")
    by_hand["spec"]["nodeName"] = lab.pod("large")["spec"]["nodeName"]
    lab.apply(by_hand)
    eventually(lambda: lab.pod("by-hand")["status"].get("reason"), "OutOfcpu")

    lab.delete("pod", "large")
    by_hand["metadata"]["name"] = "with-room"
    lab.apply(by_hand)
    lab.wait_running("with-room")
    eventually(lambda: lab.allowed("with-room"), OWN)
    assert lab.wait_in_force().metadata["generation"] == before + 1, "nothing but with-room"


def test_deleting_the_policy_restores_every_cpuset(lab: RunningLab) -> None:
    lab.apply(pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    before = lab.cpusets()
    lab.apply(policy())
    eventually(lambda: lab.allowed("owner"), OWN)
    assert lab.cpusets() != before

    lab.delete("cpupolicy", "e2e")
    eventually(lab.assignment, None)
    assert lab.cpusets() == before


def test_mode_none_restores_every_cpuset_and_the_policy_stays(lab: RunningLab) -> None:
    lab.apply(pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    before = lab.cpusets()
    lab.apply(policy())
    eventually(lambda: lab.allowed("owner"), OWN)
    lab.apply(policy(mode="None"))
    eventually(lab.cpusets, before)
    assert lab.wait_in_force().spec.mode == "None"


@NO_REALTIME
def test_a_container_runs_on_its_own_cpu_before_its_first_instruction(lab: RunningLab) -> None:
    lab.apply(policy())
    lab.wait_in_force()
    printed = []
    for number in range(FIRST_ACTS):
        name = f"first-act-{number}"
        command = ("grep", "Cpus_allowed_list", "/proc/self/status")
        lab.apply(pod(name, command, cpu="1"))
        done = "--for=jsonpath={.status.phase}=Succeeded"
        lab.kubectl("wait", done, f"pod/{name}", KUBECTL_TIMEOUT)
        printed.append(lab.kubectl("logs", name).split()[-1])
        lab.delete("pod", name)
        eventually(lambda: lab.wait_in_force().spec.containers, ())
    assert printed == ["1"] * FIRST_ACTS


def test_a_fractional_request_shares(lab: RunningLab) -> None:
    lab.apply(policy(), pod("half", cpu="500m"))
    lab.wait_running("half")
    assert not lab.wait_in_force().spec.containers
    assert lab.allowed("half") == EVERYTHING


def test_a_later_policy_pins_running_containers(lab: RunningLab) -> None:
    lab.apply(pod("owner", cpu="1"), pod("neighbour"))
    lab.wait_running("owner", "neighbour")
    lab.apply(policy())
    eventually(lambda: lab.allowed("owner"), OWN)
    eventually(lambda: lab.allowed("neighbour"), SHARED)


@NO_REALTIME
def test_an_init_container_passes_its_cpu_to_the_main_container(lab: RunningLab) -> None:
    look = ("grep", "Cpus_allowed_list", "/proc/self/status")
    owner = pod("owner", BUSY, cpu="1")
    main = owner["spec"]["containers"][0]
    owner["spec"]["initContainers"] = [main | {"name": "first", "command": list(look)}]
    lab.apply(policy(), pod("neighbour", BUSY))
    lab.wait_running("neighbour")
    lab.wait_in_force()
    lab.apply(owner)
    lab.wait_running("owner")
    eventually(lambda: lab.allowed("owner"), OWN)
    assert lab.kubectl("logs", "owner", "-c", "first").split()[-1] == str(OWN)
    assert lab.allowed("neighbour") == SHARED
    spec = lab.wait_in_force().spec
    assert [(one.container, str(one.cpus)) for one in spec.containers] == [("main", "1")]
