"""Containers whose CPUs change while they run, on a real node with two NUMA nodes and cgroup v2.

Mode Dynamic moves one so that a pod fits; a resize of its pod gives it more or fewer.

8 CPUs: 0-3 on NUMA node 0, 4-7 on NUMA node 1; 0-1 are reserved. All tests share one node.
"""

import json
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignment
from numapin_campaigns.laws.virtual_node import problems
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.virtual_node import vm_up
from support.suite.left_out import before_release

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

RULES: dict[str, Any] = {
    "reserved": {"cpus": "0-1"},
    "topology": {"policy": "SingleNUMANode"},
    "memory": {"policy": "Static"},
}
DYNAMIC = {"notice": "3s", "movePause": "0s", "maxMovesPerMinute": 60, "moveMemory": True}
POLICY = policy(mode="Dynamic", dynamic=DYNAMIC, **RULES)


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> RunningVmLab:
    """The node with the policy, before there are pods."""
    lab = vm_up(vm_lab)
    lab.apply(POLICY)
    lab.wait_in_force()
    return lab


@pytest.fixture
def fragmented(node: RunningVmLab) -> Iterator[RunningVmLab]:
    """The node with CPU 3 and CPUs 5-7 free: `lone` is on CPU 4, and `other` on CPU 2."""
    for name in ("other", "gap", "lone"):
        node.apply(pod(name, cpu="1"))
        node.wait_running(name)
        node.eventually(partial(problems, node), [])
    node.delete("pod", "gap")
    node.eventually(lambda: cpus(node), {"other": "2", "lone": "4"})
    yield node
    node.clear()
    node.apply(POLICY)
    node.eventually(lambda: cpus(node), {})
    node.eventually(partial(problems, node), [])


def entries(assignment: NodeAssignment | None) -> dict[str, ContainerAssignment]:
    return {one.pod: one for one in assignment.spec.containers} if assignment else {}


def cpus(lab: RunningVmLab) -> dict[str, str]:
    return {name: str(one.cpus) for name, one in entries(lab.assignment()).items()}


def moving(lab: RunningVmLab) -> bool:
    return any(one.moving for one in entries(lab.assignment()).values())


def is_due(lab: RunningVmLab) -> bool:
    """Whether it is written when the old CPUs leave."""
    moves = [one.moving for one in entries(lab.assignment()).values() if one.moving]
    return any(one.at for one in moves)


def allowed(lab: RunningVmLab, name: str) -> str:
    return str(lab.allowed(name))


def moved(lab: RunningVmLab) -> None:
    """Wait until `lone` has moved and `wide` has what it asks for."""
    wanted = {"other": "2", "lone": "3", "wide": "4-7"}
    lab.eventually(lambda: cpus(lab), wanted)
    lab.eventually(partial(problems, lab), [])
    assert {name: allowed(lab, name) for name in wanted} == wanted
    assert not moving(lab)


def notes(lab: RunningVmLab, name: str) -> dict[str, str]:
    found: dict[str, Any] = {one["reason"]: one for one in lab.events(name)}
    return {reason: one.get("note") or one["message"] for reason, one in found.items()}


def test_a_container_is_moved_so_that_a_pod_gets_one_numa_node(fragmented: RunningVmLab) -> None:
    fragmented.apply(pod("wide", cpu="4"))
    fragmented.wait_running("wide")
    moved(fragmented)
    assert entries(fragmented.assignment())["lone"].moved_at is not None
    told = {"CPUsMoving", "CPUsMoved"}
    fragmented.eventually(lambda: told <= notes(fragmented, "lone").keys(), True)
    fragmented.eventually(lambda: "WaitingForMoves" in notes(fragmented, "wide"), True)


def shared(lab: RunningVmLab) -> list[str]:
    """The CPUs that two pods with exclusive ones have, by the kernel."""
    state, sets = lab.look(), dict[str, CpuSet]()
    for name in entries(lab.assignment()):
        _, tasks = state.of(lab.container_id(name))
        sets[name] = CpuSet.union(CpuSet.parse(one.cpus) for one in tasks)
    pairs = combinations(sorted(sets), 2)
    return [f"{a} and {b}: {both}" for a, b in pairs if (both := sets[a] & sets[b])]


@before_release
def test_operator_and_enforcer_are_killed_during_a_move(fragmented: RunningVmLab) -> None:
    """What is known of a move is in the NodeAssignment: who comes after goes on with it."""

    started = fragmented.pod("lone")["status"]["containerStatuses"][0]["containerID"]
    fragmented.apply(pod("wide", cpu="4"))
    fragmented.wait(lambda: moving(fragmented), "`lone` to move")
    fragmented.kill("operator")
    fragmented.kill("enforcer")
    assert shared(fragmented) == []
    fragmented.restart("enforcer")
    fragmented.eventually(lambda: allowed(fragmented, "lone"), "3-4")
    fragmented.restart("operator")
    fragmented.wait(lambda: is_due(fragmented) or not moving(fragmented), "a time to leave")
    fragmented.kill("operator")
    assert shared(fragmented) == []
    fragmented.restart("operator")
    fragmented.wait_running("wide")
    moved(fragmented)
    status = fragmented.pod("lone")["status"]["containerStatuses"][0]
    assert (status["containerID"], status["restartCount"]) == (started, 0)


@pytest.fixture
def resizable(node: RunningVmLab) -> Iterator[RunningVmLab]:
    """The node without moves: `owner` has CPUs 4-5, and CPUs 2-3 and 6-7 are free."""
    node.apply(policy(**{**RULES, "mode": "Static"}), pod("gap", cpu="2"))
    node.wait_running("gap")
    node.apply(pod("owner", cpu="2"))
    node.wait_running("owner")
    node.delete("pod", "gap")
    node.eventually(lambda: cpus(node), {"owner": "4-5"})
    node.eventually(partial(problems, node), [])
    yield node
    node.clear()
    node.apply(POLICY)
    node.eventually(lambda: cpus(node), {})
    node.eventually(partial(problems, node), [])


def resize(lab: RunningVmLab, name: str, cpu: str) -> None:
    """Ask for other CPUs, as a user does."""
    amounts = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    lab.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(patch))


def has(lab: RunningVmLab, name: str, wanted: str) -> None:
    """Wait until a container has these CPUs, in the spec, in the kernel and in the status."""
    lab.eventually(lambda: cpus(lab).get(name), wanted)
    lab.eventually(partial(problems, lab), [])
    assert allowed(lab, name) == wanted


def waits(lab: RunningVmLab) -> dict[str, tuple[str, str]]:
    """The pods whose resize waits: the reason and the message."""
    assignment = lab.assignment()
    refused = assignment.spec.refused_resizes if assignment else None
    return {one.pod: (one.reason, one.message) for one in refused or ()}


def test_a_resize_keeps_the_first_cpu_and_waits_where_one_numa_node_has_too_few(
    resizable: RunningVmLab,
) -> None:
    lab = resizable
    started = lab.container_id("owner")
    resize(lab, "owner", "4")
    has(lab, "owner", "4-7")
    resize(lab, "owner", "1")
    has(lab, "owner", "4")
    for name in ("far", "near"):
        lab.apply(pod(name, cpu="2"))
        lab.wait_running(name)
    lab.eventually(lambda: cpus(lab), {"owner": "4", "far": "2-3", "near": "6-7"})
    lab.delete("pod", "far")
    lab.eventually(lambda: cpus(lab), {"owner": "4", "near": "6-7"})
    resize(lab, "owner", "4")
    lab.eventually(lambda: list(waits(lab)), ["owner"])
    reason, message = waits(lab)["owner"]
    assert reason == "TopologyAffinityError"
    assert "no NUMA nodes have 3 CPUs besides 4" in message
    assert "free on NUMA node 0: 2 CPUs" in message
    lab.eventually(lambda: "besides 4" in notes(lab, "owner").get(reason, ""), True)
    has(lab, "owner", "4")
    lab.delete("pod", "near")
    has(lab, "owner", "4-7")
    assert waits(lab) == {}
    assert lab.container_id("owner") == started
    (status,) = lab.pod("owner")["status"]["containerStatuses"]
    assert status["restartCount"] == 0


def chosen(lab: RunningVmLab, pid: int, cpu: int) -> str:
    """Let the process of `owner` choose a CPU; returns which ones the kernel lets it use then."""
    lab.machine(f"taskset -p {1 << cpu:x} {pid}; true")  # refused while it lacks the CPU
    return allowed(lab, "owner")


@before_release
def test_a_thread_that_chose_its_cpus_has_all_of_the_container_after_a_resize(
    resizable: RunningVmLab,
) -> None:
    """Until Linux 6.2. Since then the kernel remembers the choice.

    Source: Linux 6.2, kernel/sched/core.c, `__set_cpus_allowed_ptr`.
    """
    lab = resizable
    (pid,) = lab.look().of(lab.container_id("owner"))[0].pids
    release = lab.machine("uname -r").strip()
    remembers = tuple(int(part) for part in release.split(".")[:2]) >= (6, 2)
    lab.eventually(lambda: chosen(lab, pid, 5), "5")
    resize(lab, "owner", "4")
    lab.eventually(lambda: cpus(lab).get("owner"), "4-7")
    lab.eventually(lambda: allowed(lab, "owner"), "5" if remembers else "4-7")
    lab.eventually(lambda: chosen(lab, pid, 6), "6")
    resize(lab, "owner", "2")
    has(lab, "owner", "4-5")
