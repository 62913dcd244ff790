"""Mode Dynamic on a real node with two NUMA nodes: a container is moved so that a pod fits.

8 CPUs: 0-3 on NUMA node 0, 4-7 on NUMA node 1; 0-1 are reserved. All tests share one node.
"""

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignment
from numapin_lab.cluster import VmCluster
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import BUSY, pod, policy
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.vm_invariants import problems

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

DYNAMIC = {"notice": "3s", "movePause": "0s", "maxMovesPerMinute": 60, "moveMemory": True}
POLICY = policy(
    mode="Dynamic",
    dynamic=DYNAMIC,
    reserved={"cpus": "0-1"},
    topology={"policy": "SingleNUMANode"},
    memory={"policy": "Static"},
)


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> RunningVmLab:
    """The node with the policy, before there are pods."""
    cluster = vm_lab.up()
    assert isinstance(cluster, VmCluster)
    lab = RunningVmLab(cluster)
    lab.apply(POLICY)
    lab.wait_in_force()
    return lab


@pytest.fixture
def fragmented(node: RunningVmLab) -> Iterator[RunningVmLab]:
    """The node with CPU 3 and CPUs 5-7 free: `busy` is on CPU 4, and `other` on CPU 2."""
    for name, command in (("other", None), ("gap", None), ("busy", BUSY)):
        node.apply(pod(name, command, cpu="1") if command else pod(name, cpu="1"))
        node.wait_running(name)
        node.eventually(partial(problems, node), [])
    node.delete("pod", "gap")
    node.eventually(lambda: cpus(node), {"other": "2", "busy": "4"})
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
    """Wait until `busy` has moved and `wide` has what it asks for."""
    wanted = {"other": "2", "busy": "3", "wide": "4-7"}
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
    assert entries(fragmented.assignment())["busy"].moved_at is not None
    told = {"CPUsMoving", "CPUsMoved"}
    fragmented.eventually(lambda: told <= notes(fragmented, "busy").keys(), True)
    fragmented.eventually(lambda: "WaitingForMoves" in notes(fragmented, "wide"), True)


def shared(lab: RunningVmLab) -> list[str]:
    """The CPUs that two pods with exclusive ones have, by the kernel."""
    state, sets = lab.look(), dict[str, CpuSet]()
    for name in entries(lab.assignment()):
        _, tasks = state.of(lab.container_id(name))
        sets[name] = CpuSet.union(CpuSet.parse(one.cpus) for one in tasks)
    pairs = combinations(sorted(sets), 2)
    return [f"{a} and {b}: {both}" for a, b in pairs if (both := sets[a] & sets[b])]


def test_operator_and_enforcer_are_killed_during_a_move(fragmented: RunningVmLab) -> None:
    """What is known of a move is in the NodeAssignment: who comes after goes on with it."""

    started = fragmented.pod("busy")["status"]["containerStatuses"][0]["containerID"]
    fragmented.apply(pod("wide", cpu="4"))
    fragmented.wait(lambda: moving(fragmented), "`busy` to move")
    fragmented.kill("operator")
    fragmented.kill("enforcer")
    assert shared(fragmented) == []
    fragmented.restart("enforcer")
    fragmented.eventually(lambda: allowed(fragmented, "busy"), "3-4")
    fragmented.restart("operator")
    fragmented.wait(lambda: is_due(fragmented) or not moving(fragmented), "a time to leave")
    fragmented.kill("operator")
    assert shared(fragmented) == []
    fragmented.restart("operator")
    fragmented.wait_running("wide")
    moved(fragmented)
    status = fragmented.pod("busy")["status"]["containerStatuses"][0]
    assert (status["containerID"], status["restartCount"]) == (started, 0)
