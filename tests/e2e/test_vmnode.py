"""A real node with two NUMA nodes, threads and cgroup v2: the kernel enforces what was decided.

8 CPUs: cores 0-1, 2-3 on NUMA node 0, 4-5, 6-7 on NUMA node 1; core 0-1 is reserved. All tests
share one node with the same pods. Each test leaves it as it was, except the last ones.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from numapin_api.nodeassignment import NodeAssignment
from numapin_campaigns.laws.virtual_node import problems
from numapin_client.client import connect
from numapin_client.login.kubeconfig import kubeconfig_login
from numapin_lab.controlplane.node_objects import NodeWatch
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.running_lab import RunningVmLab, Task
from support.real.telemetry.guest_tasks import Rates, busy, confined, rates_in
from support.real.virtual_node import vm_up
from support.suite.left_out import before_release

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

RULES: dict[str, Any] = {
    "reserved": {"cpus": "0-1"},
    "options": {"fullPCPUsOnly": True},
    "topology": {"policy": "SingleNUMANode"},
    "memory": {"policy": "Static"},
}
POLICY = policy(**RULES)
DYNAMIC = policy(mode="Dynamic", dynamic={"notice": "0s"}, **RULES)
HELD_MIB = 256
HELD_PAGES = HELD_MIB * 256
# What the runtime and the program touched before their memory was bound.
TRACE_PAGES = 64
# dd keeps its buffer until it is read, and has touched all of it by then.
HOLD = ("sh", "-c", f"dd if=/dev/zero bs={HELD_MIB}M count=1 | sleep 1000000")
FIRST_ACT = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status; sleep 1000000")


@pytest.fixture(scope="module")
def empty(vm_lab: LabFolder) -> RunningVmLab:
    """The node before there is a policy or a pod."""
    lab = vm_up(vm_lab)
    # Large pages move at once: there would be nothing to wait for.
    lab.write("/sys/kernel/mm/transparent_hugepage/enabled", "never")
    return lab


@pytest.fixture(scope="module")
def node(empty: RunningVmLab) -> RunningVmLab:
    """The node with two exclusive pods, a refused pod and two shared pods."""
    burst = pod("burst")
    burst["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    empty.apply(POLICY)
    # The scheduler binds pods concurrently, and placement follows the time of binding in seconds,
    # then the name. The reason to refuse `odd` depends on the pods placed before it.
    empty.apply(pod("owner", HOLD, cpu="2", memory=f"{HELD_MIB + 32}Mi"))
    empty.apply(pod("second", cpu="2"))
    empty.wait_running("second")
    empty.apply(pod("odd", cpu="3"), pod("neighbour"), burst)
    empty.wait_running("owner", "second", "odd", "neighbour", "burst")
    empty.eventually(partial(problems, empty), [])
    return empty


@pytest.fixture
def unchanged(node: RunningVmLab) -> Iterator[RunningVmLab]:
    """The node; asserts that the test left its cgroups as they were."""
    groups = node.look().groups
    yield node
    node.eventually(partial(problems, node), [])
    assert node.look().groups == groups


def status_of(lab: RunningVmLab) -> dict[str, Any]:
    assignment = lab.assignment()
    return assignment.status.to_wire() if assignment and assignment.status else {}


def uid(lab: RunningVmLab, name: str) -> str:
    return str(lab.pod(name)["metadata"]["uid"])


def reported(lab: RunningVmLab, name: str) -> tuple[str, str, bool] | None:
    """CPUs, NUMA nodes and exclusiveness that the status reports for a pod's container."""
    wanted = uid(lab, name)
    for one in status_of(lab).get("containers", ()):
        if one["podUID"] == wanted:
            return one["cpus"], one["mems"], one["exclusive"]
    return None


def of(lab: RunningVmLab, name: str) -> tuple[str, str, set[tuple[str, str]]]:
    """Effective CPUs and NUMA nodes of a container's cgroup, and those of its processes."""
    group, tasks = lab.look().of(lab.container_id(name))
    return group.cpus_effective, group.mems_effective, {(one.cpus, one.mems) for one in tasks}


def pages(lab: RunningVmLab, name: str) -> dict[int, int]:
    group, _ = lab.look().of(lab.container_id(name))
    return lab.pages(group.pids)


def held_on(lab: RunningVmLab, name: str) -> int | None:
    """The NUMA node that has nearly all of a pod's memory; None if there is none."""
    for numa_node, count in (found := pages(lab, name)).items():
        if count >= HELD_PAGES and sum(found.values()) - count < TRACE_PAGES:
            return numa_node
    return None


def test_exclusive_containers_get_whole_cores_of_one_numa_node(unchanged: RunningVmLab) -> None:
    own = {name: reported(unchanged, name) for name in ("owner", "second")}
    assert set(own.values()) == {("2-3", "0", True), ("4-5", "1", True)}
    for name, answer in own.items():
        assert answer is not None
        cpus, mems, _ = answer
        assert of(unchanged, name) == (cpus, mems, {(cpus, mems)})
    refused = unchanged.wait_in_force().spec.refused
    assert [(one.pod, one.reason) for one in refused] == [("odd", "TopologyAffinityError")]


def test_all_other_containers_are_off_the_exclusive_cpus(unchanged: RunningVmLab) -> None:
    for name in ("odd", "neighbour", "burst"):
        assert of(unchanged, name) == ("0-1,6-7", "0-1", {("0-1,6-7", "0-1")})
    pools = status_of(unchanged)["pools"]
    assert pools == {"reserved": "0-1", "shared": "0-1,6-7", "exclusive": "2-5"}


def test_memory_is_on_the_bound_numa_node(unchanged: RunningVmLab) -> None:
    own = reported(unchanged, "owner")
    assert own is not None
    unchanged.eventually(lambda: held_on(unchanged, "owner"), int(own[1]))


@contextmanager
def watched(lab: RunningVmLab) -> Iterator[list[NodeAssignment]]:
    """Every version of what is said of the node, from before the `with` block to its end."""
    seen, loop = list[NodeAssignment](), asyncio.new_event_loop()

    def note(_: str, body: dict[str, Any] | None) -> None:
        if body is not None:
            seen.append(NodeAssignment.model_validate(body))

    async def follow() -> None:
        async with connect(kubeconfig_login(str(lab.kubectl.kubeconfig))) as client:
            await NodeWatch(client, note, lab.node).run()

    following = loop.create_task(follow())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(following)
        loop.run_until_complete(asyncio.sleep(0.1))  # the connections close meanwhile
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        lab.eventually(lambda: bool(seen) and seen[-1].status is not None, True)
        yield seen
    finally:
        loop.call_soon_threadsafe(following.cancel)
        thread.join()


def move(lab: RunningVmLab, name: str, mems: str) -> None:
    """Move a pod's memory by a patched spec; the operator itself never does that."""
    wire = lab.wait_in_force().spec.to_wire()["containers"]
    lab.patch_assignment(
        {"containers": [one | ({"mems": mems} if one["pod"] == name else {}) for one in wire]}
    )
    lab.eventually(lambda: reported(lab, name), ("2-3", mems, True))
    lab.eventually(lambda: held_on(lab, name), int(mems))
    lab.eventually(partial(problems, lab), [])


def ready_only_if_in_force(assignment: NodeAssignment) -> bool:
    """False if it is Ready while a container's memory is not where its spec says."""
    generation, status = assignment.metadata["generation"], assignment.status
    if status is None or not any(
        (one.type, one.status, one.observed_generation) == ("Ready", "True", generation)
        for one in status.conditions
    ):
        return True
    expected = {one.key: one.mems for one in assignment.spec.containers}
    return expected == {one.key: one.mems for one in status.containers}


def test_memory_follows_a_change_of_numa_nodes_and_only_then_all_is_ready(
    unchanged: RunningVmLab,
) -> None:
    unchanged.eventually(lambda: held_on(unchanged, "owner"), 0)
    unchanged.kill("operator")
    with watched(unchanged) as seen:
        move(unchanged, "owner", "1")
        move(unchanged, "owner", "0")
    unchanged.restart("operator")
    assert len(seen) >= 5
    assert [one for one in seen if not ready_only_if_in_force(one)] == []


def test_the_fence_holds_while_the_enforcer_is_down(unchanged: RunningVmLab) -> None:
    groups = unchanged.look().groups
    unchanged.kill("enforcer")
    unchanged.apply(pod("late", FIRST_ACT))
    unchanged.wait_running("late")
    born = unchanged.read("/run/pods/default_late_*/main/0.log")
    assert [text.split()[-1] for text in born.values()] == ["0-1,6-7"]
    late = uid(unchanged, "late")
    assert unchanged.look().without(late) == groups

    unchanged.restart("enforcer")
    unchanged.eventually(partial(problems, unchanged), [])
    assert unchanged.look().without(late) == groups
    assert status_of(unchanged)["driftCount"] == 0
    unchanged.delete("pod", "late")
    unchanged.eventually(lambda: unchanged.look().groups, groups)


def test_a_restarted_kubelet_changes_nothing(unchanged: RunningVmLab) -> None:
    """The kubelet writes all CPUs to its own cgroup at each start."""
    state = unchanged.look()
    registrations = unchanged.machine("grep -c 'Successfully registered' /run/kubelet.log")
    unchanged.restart_kubelet()

    def again() -> bool:
        said = unchanged.machine("grep -c 'Successfully registered' /run/kubelet.log")
        return int(said) > int(registrations)

    unchanged.wait(again, "the kubelet to be back")
    unchanged.cluster.vm.wait_ready()
    assert unchanged.look() == state
    assert status_of(unchanged)["driftCount"] == 0


def test_a_shared_cpu_goes_offline_and_comes_back(unchanged: RunningVmLab) -> None:
    unchanged.set_online(7, online=False)
    unchanged.eventually(lambda: status_of(unchanged)["topology"]["offline"], "7")
    unchanged.eventually(lambda: status_of(unchanged)["pools"]["shared"], "0-1,6")
    unchanged.eventually(partial(problems, unchanged), [])
    assert of(unchanged, "neighbour")[0] == "0-1,6"
    unchanged.set_online(7, online=True)
    unchanged.eventually(lambda: status_of(unchanged)["topology"]["offline"], "")
    unchanged.eventually(lambda: of(unchanged, "neighbour")[0], "0-1,6-7")


def test_overwritten_cpusets_are_reverted_counted_and_reported(unchanged: RunningVmLab) -> None:
    owner = unchanged.container("owner")
    drifts = status_of(unchanged)["driftCount"]
    unchanged.write(f"{owner}/cpuset.cpus", "0-3")
    best_effort = unchanged.container("neighbour").parents[1]
    unchanged.write(f"{best_effort}/cpuset.cpus", "0-7")
    unchanged.eventually(partial(problems, unchanged), [])
    unchanged.eventually(lambda: status_of(unchanged)["driftCount"] >= drifts + 2, True)

    def notes() -> list[str]:
        events = unchanged.kubectl.get("events", "--field-selector=reason=CpusetDrift")["items"]
        return [one.get("note") or one["message"] for one in events]

    wanted = "container default/owner/main had cpus 0-3 instead of 2-3; reverted"
    unchanged.eventually(lambda: wanted in notes(), True)


@before_release
def test_a_busy_foreign_process_is_seen_on_an_exclusive_cpu_and_seen_to_be_gone(
    unchanged: RunningVmLab,
) -> None:
    second = unchanged.container("second")
    with confined(unchanged, range(2), range(8)), busy(unchanged, 4, second):
        rates_in(unchanged, Rates.is_quiet)
        with busy(unchanged, 4):
            rates_in(unchanged, Rates.is_shared)
        rates_in(unchanged, Rates.is_quiet)


def outdated(lab: RunningVmLab) -> list[str]:
    assignment = lab.assignment()
    return [one.pod for one in assignment.spec.containers if one.outdated] if assignment else []


def test_a_container_that_lost_a_cpu_is_outdated_and_moves_in_mode_dynamic(
    node: RunningVmLab,
) -> None:
    """It cannot have another CPU beside the rest, because it has whole cores only."""
    assert reported(node, "second") == ("4-5", "1", True)
    node.set_online(5, online=False)
    node.eventually(lambda: reported(node, "second"), ("4", "1", True))
    node.eventually(partial(problems, node), [])
    assert of(node, "second") == ("4", "1", {("4", "1")})
    assert of(node, "neighbour")[0] == "0-1,6-7"
    assert reported(node, "owner") == ("2-3", "0", True)
    assert status_of(node)["topology"]["offline"] == "5"
    node.eventually(lambda: outdated(node), ["second"])
    node.apply(DYNAMIC)
    node.eventually(lambda: reported(node, "second"), ("6-7", "1", True))
    node.eventually(lambda: of(node, "neighbour")[0], "0-1,4")
    node.eventually(lambda: outdated(node), [])
    node.eventually(partial(problems, node), [])
    assert of(node, "second") == ("6-7", "1", {("6-7", "1")})
    node.set_online(5, online=True)
    node.eventually(lambda: of(node, "neighbour")[0], "0-1,4-5")
    node.eventually(partial(problems, node), [])


def test_without_the_policy_every_cpuset_is_as_before(node: RunningVmLab) -> None:
    """Cpusets are widened, not emptied: the kernel refuses to empty one that has processes."""
    node.delete("cpupolicy", "e2e")
    node.eventually(node.assignment, None)
    state = node.look()
    for path, group in state.groups.items():
        assert (group.cpus_effective, group.mems_effective) == ("0-7", "0-1"), path
        assert group.cpus in {"", "0-7"}, path
        assert group.mems in {"", "0-1"}, path
    assert set(state.tasks.values()) == {Task("0-7", "0-1")}
