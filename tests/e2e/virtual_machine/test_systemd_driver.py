"""A real kubelet and containerd with the cgroup driver `systemd`, under a real systemd.

8 CPUs: 0-3 on NUMA node 0, 4-7 on NUMA node 1; 0-1 are reserved. All tests share one node with the
same pods; the last ones release it. With NUMAPIN_TEST_AS=pods numapin runs as pods, from
`manifests/overlays/default`, which takes ten minutes; `make systemd` runs it both ways.
"""

import json
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.names import NAMESPACE
from numapin_campaigns.laws.virtual_node import problems
from numapin_lab.installed.uninstall import left_in_cluster, uninstall
from numapin_lab.installed.vm_cluster import InstalledVmCluster
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.node import GuestEnforcer, guest_standby
from numapin_lab.vm.running_lab import KernelState, RunningVmLab, Task, container_of
from support.real.virtual_node import vm_up

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

POLICY = policy(
    reserved={"cpus": "0-1"},
    topology={"policy": "SingleNUMANode"},
    memory={"policy": "Static"},
)
CLASSES = ("kubepods-burstable.slice", "kubepods-besteffort.slice")
FIRST_ACT = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status; sleep 1000000")
OWN, SHARED, ALL = "2-3", "0-1,4-7", "0-7"
QUOTA = "200000"
SCHED_RR = "2"
NOWHERE = "true"
PODS = os.environ.get("NUMAPIN_TEST_AS") == "pods"
DRIVER = "NUMAPIN_TEST_DRIVER"
as_pods = pytest.mark.run_by("make systemd", PODS)
as_processes = pytest.mark.run_by("make systemd", not PODS and os.environ.get(DRIVER) == "systemd")
IN = ("--namespace", NAMESPACE)
ENFORCER = "daemonset/numapin-enforcer"


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> RunningVmLab:
    """The node with an exclusive pod and shared ones, Guaranteed and BestEffort."""
    lab = vm_up(replace(vm_lab, systemd=True, pods=PODS))
    lab.apply(POLICY)
    lab.wait_in_force()
    owner = pod("owner", FIRST_ACT, cpu="2")
    owner["spec"]["restartPolicy"] = "Always"
    lab.apply(owner, pod("fraction", cpu="500m"), pod("neighbour"))
    lab.wait_running("owner", "fraction", "neighbour")
    lab.eventually(partial(problems, lab), [])
    return lab


@pytest.fixture
def unchanged(node: RunningVmLab) -> Iterator[RunningVmLab]:
    """The node; asserts that all is in force after the test, in systemd too."""
    yield node
    in_force(node)


def in_force(lab: RunningVmLab) -> None:
    lab.eventually(partial(problems, lab), [])
    assert tasks_of(lab, "owner") == {Task(OWN, "0")}
    assert tasks_of(lab, "fraction") == {Task(SHARED, "0")}
    assert tasks_of(lab, "neighbour") == {Task(SHARED, "0-1")}
    wanted = {lab.container("owner").name: (OWN, "0")} | dict.fromkeys(CLASSES, (SHARED, ""))
    lab.eventually(lambda: remembered(lab, wanted), wanted)
    cgroup = lab.container("owner")
    lab.eventually(lambda: quotas(lab, cgroup), {"max"})


def quotas(lab: RunningVmLab, cgroup: Path) -> set[str]:
    """The CFS quotas of a container and its pod."""
    found = lab.read(*(f"{one}/cpu.max" for one in (cgroup, cgroup.parent)))
    return {text.split()[0] for text in found.values()}


def tasks_of(lab: RunningVmLab, name: str) -> set[Task]:
    return set(lab.look().of(lab.container_id(name))[1])


def cpus_of(lab: RunningVmLab, name: str) -> set[str]:
    return {one.cpus for one in tasks_of(lab, name)}


def remembered(lab: RunningVmLab, units: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The CPUs and NUMA nodes that systemd remembers of each unit; empty is no restriction."""
    show = "systemctl show --property=Id,AllowedCPUs,AllowedMemoryNodes"
    found = {}
    for block in lab.machine(f"{show} {shlex.join(units)}").strip().split("\n\n"):
        properties = dict(line.split("=", 1) for line in block.splitlines())
        cpus, mems = (properties[f"Allowed{what}"] for what in ("CPUs", "MemoryNodes"))
        found[properties["Id"]] = (kernel_list(cpus), kernel_list(mems))
    return found


def kernel_list(ranges: str) -> str:
    """A list of systemd's, which has blanks between its ranges, as the kernel writes it."""
    return str(CpuSet.parse(",".join(ranges.split())))


def status_of(lab: RunningVmLab) -> dict[str, Any]:
    assignment = lab.assignment()
    return assignment.status.to_wire() if assignment and assignment.status else {}


def assert_new_pods_are_fenced(lab: RunningVmLab) -> None:
    """While no enforcer runs, pods that start have shared CPUs, and `owner` keeps its own."""
    burst = pod("burst", FIRST_ACT)
    burst["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    lab.apply(burst, pod("late", cpu="500m"))
    lab.wait_running("burst", "late")
    for name in ("burst", "late"):
        lab.eventually(partial(cpus_of, lab, name), {SHARED})
    assert first_words(lab, "burst") == f"Cpus_allowed_list:\t{SHARED}"
    assert tasks_of(lab, "owner") == {Task(OWN, "0")}


def pods_of(lab: RunningVmLab, component: str = "") -> list[dict[str, Any]]:
    """Numapin's pods, or those of one of its programs."""
    label = f"--selector=app.kubernetes.io/component={component}" if component else ""
    return list(lab.kubectl.get("pods", *IN, *filter(None, [label]))["items"])


def first_words(lab: RunningVmLab, name: str) -> str:
    """What the newest container of a pod has printed."""
    newest = f"ls -t /run/pods/default_{name}_*/main/*.log | head -n 1"
    return lab.machine(f"cut -d ' ' -f 4- $({newest})").strip()


def test_the_driver_is_systemd_and_it_has_every_set(unchanged: RunningVmLab) -> None:
    assert status_of(unchanged)["cgroup"] == {"version": 2, "driver": "systemd"}
    found = {one["cpus"]: one["exclusive"] for one in status_of(unchanged)["containers"]}
    assert found == {OWN: True, SHARED: False}
    assert unchanged.machine("cat /proc/1/comm").strip() == "systemd"


def test_an_exclusive_container_that_restarts_is_pinned_again(unchanged: RunningVmLab) -> None:
    lab, before = unchanged, unchanged.container_id("owner")
    (pid,) = lab.look().of(before)[0].pids
    lab.machine(f"kill -9 {pid}")
    lab.wait(lambda: restarted(lab, before), "the container to run again")


def restarted(lab: RunningVmLab, before: str) -> bool:
    (status,) = lab.pod("owner")["status"]["containerStatuses"]
    return "running" in status["state"] and lab.container_id("owner") != before


def test_what_systemd_and_the_kubelet_write_by_themselves_changes_nothing(
    unchanged: RunningVmLab,
) -> None:
    lab, state, drifts = unchanged, state_of(unchanged), status_of(unchanged)["driftCount"]
    units = {unit for path in state.groups for unit in path.split("/")} - {"."}
    weights = [f"systemctl set-property --runtime {unit} CPUWeight=77" for unit in units]
    lab.machine("\n".join([*weights, "systemctl daemon-reload", "systemctl daemon-reexec"]))
    assert state_of(lab) == state
    lab.restart_kubelet()
    lab.cluster.vm.wait_ready()
    assert state_of(lab) == state
    assert status_of(lab)["driftCount"] == drifts


def state_of(lab: RunningVmLab) -> KernelState:
    """All cgroups and tasks of pods but numapin's own, which may start again on a busy machine."""
    own = [one["metadata"]["uid"] for one in pods_of(lab)]
    found = lab.look()
    groups = found.without(*own)
    pids = {pid for group in groups.values() for pid in group.pids}
    return KernelState(groups, {pid: task for pid, task in found.tasks.items() if pid in pids})


def test_sets_that_others_give_to_systemd_are_reverted_and_counted(
    unchanged: RunningVmLab,
) -> None:
    drifts = status_of(unchanged)["driftCount"]
    for unit in (CLASSES[1], unchanged.container("owner").name):
        unchanged.machine(f"systemctl set-property --runtime {unit} AllowedCPUs=0-7")
    unchanged.eventually(partial(problems, unchanged), [])
    unchanged.eventually(lambda: status_of(unchanged)["driftCount"] >= drifts + 2, True)


@as_pods
def test_the_enforcers_own_container_has_the_shared_cpus_and_real_time_priority(
    unchanged: RunningVmLab,
) -> None:
    lab, (own,) = unchanged, pods_of(unchanged, "enforcer")
    (status,) = own["status"]["containerStatuses"]
    group, tasks = lab.look().of(status["containerID"].partition("://")[2])
    assert {one.cpus for one in tasks} == {SHARED}
    policies = lab.machine("; ".join(f"cut -d ' ' -f 41 /proc/{pid}/stat" for pid in group.pids))
    assert set(policies.split()) == {SCHED_RR}


@as_pods
def test_a_set_that_others_gave_to_the_enforcers_own_container_is_in_nobodys_way(
    unchanged: RunningVmLab,
) -> None:
    """With nsdelegate only the runtime can change it: else CPUs 4-5 could not be granted."""
    lab, (own,) = unchanged, pods_of(unchanged, "enforcer")
    (status,) = own["status"]["containerStatuses"]
    wanted = status["containerID"].partition("://")[2]
    (path,) = (path for path in lab.look().groups if container_of(path) == wanted)
    lab.write(f"{lab.kubepods / path}/cpuset.cpus", "4-5")
    lab.apply(pod("second", cpu="2"))
    lab.wait_running("second")
    lab.eventually(lambda: len(status_of(lab)["containers"]), 3)
    lab.eventually(lambda: lab.look().groups[path].cpus, ALL)
    lab.eventually(partial(problems, lab), [])
    found = tasks_of(lab, "second")
    lab.delete("pods", "second")
    assert found == {Task("4-5", "1")}
    lab.eventually(partial(problems, lab), [])


def left_restricted(lab: RunningVmLab) -> dict[str, object]:
    """The parts of a fence that the kernel or systemd has left."""
    state = lab.look()
    found: dict[str, object] = {
        path: one for path, one in state.groups.items() if one.cpus_effective != ALL
    }
    found |= {str(pid): one for pid, one in state.tasks.items() if one != Task(ALL, "0-1")}
    scopes = [path.rpartition("/")[2] for path in state.groups if path.endswith(".scope")]
    free = {unit: {("", "")} for unit in CLASSES}
    free |= {unit: {(cpus, mems) for cpus in ("", ALL) for mems in ("", "0-1")} for unit in scopes}
    found |= {unit: one for unit, one in remembered(lab, free).items() if one not in free[unit]}
    limits = quotas(lab, lab.container("owner"))
    return found | ({"quota": limits} if limits != {QUOTA} else {})


@contextmanager
def weighed_all_the_time(lab: RunningVmLab) -> Iterator[None]:
    """As the kubelet does once a minute: systemd then writes the sets that it has of each class."""
    write = "systemctl set-property --runtime $unit CPUWeight=$weight"
    each = f"for unit in {shlex.join(CLASSES)}; do for weight in 77 78; do {write}; done; done"
    loop = f"while test -e /run/weigh; do {each}; done"
    lab.machine(f"touch /run/weigh; ({loop}) >/dev/null 2>&1 </dev/null &")
    try:
        yield
    finally:
        lab.machine("rm /run/weigh")


def test_without_the_policy_kernel_and_systemd_restrict_nothing(node: RunningVmLab) -> None:
    with weighed_all_the_time(node):
        node.delete("cpupolicy", "e2e")
        node.eventually(node.assignment, None)
        node.eventually(partial(left_restricted, node), {})
    node.apply(POLICY)
    node.wait_in_force()
    in_force(node)


@as_processes
def test_a_standby_fences_new_pods_and_a_release_by_hand_frees_all(node: RunningVmLab) -> None:
    lab, standby = node, guest_standby(node.cluster.vm)
    enforcer = lab.agent("enforcer")
    assert isinstance(enforcer, GuestEnforcer)
    standby.start()
    enforcer.kill()
    assert_new_pods_are_fenced(lab)
    said = lab.machine(shlex.join([*enforcer.daemon.command, "--release"]))
    assert "everything was released" in said
    assert left_restricted(lab) == {}


@as_pods
def test_without_the_enforcers_pod_new_pods_are_fenced_until_it_returns(
    unchanged: RunningVmLab,
) -> None:
    lab = unchanged
    for wanted, ready in ((NOWHERE, 0), (None, 1)):
        selector = {"spec": {"template": {"spec": {"nodeSelector": {"nowhere": wanted}}}}}
        lab.kubectl("patch", ENFORCER, *IN, "--type=merge", "--patch", json.dumps(selector))
        lab.eventually(lambda: len(pods_of(lab, "enforcer")), ready)
        if not ready:
            assert_new_pods_are_fenced(lab)
    lab.wait_in_force()
    lab.delete("pods", "burst", "late")


@as_pods
def test_removed_as_the_readme_says_it_restricts_nothing(node: RunningVmLab) -> None:
    assert isinstance(node.cluster, InstalledVmCluster)
    uninstall(node.cluster)
    assert left_in_cluster(node.kubectl) == []
    node.eventually(lambda: len(node.cluster.pods()), 3)
    node.eventually(partial(left_restricted, node), {})
