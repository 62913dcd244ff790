"""What a kernel has apart from pods that are bound, on a real node with two NUMA nodes.

Huge pages that others hold, isolated CPUs, memory of a pod that was there before memory was bound,
or that was promised to another.

8 CPUs: cores 0-1, 2-3 on NUMA node 0, 4-5, 6-7 on NUMA node 1; core 0-1 is reserved, CPU 7 is
isolated. Each NUMA node has one page of 1 GiB.
"""

from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_lab.errors import LabError
from numapin_lab.lifecycle import LabFolder
from numapin_lab.running_lab import pod, policy
from numapin_lab.vm.running_lab import RunningVmLab
from support.real.virtual_node import vm_up
from support.suite.left_out import before_release

pytestmark = pytest.mark.timeout(1800)  # for a machine with much else to do

POLICY = policy(
    reserved={"cpus": "0-1"},
    topology={"policy": "SingleNUMANode"},
    memory={"policy": "Static"},
)
PAGES = "/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/{file}"
KIB = {"2Mi": 2048, "1Gi": 1024 * 1024}
SMALL_PAGES = 16
HELD = "/run/pages/held"
HOLD_OF_NODE_0 = f"""
mkdir -p /run/pages /sys/fs/cgroup/holder
mount -t hugetlbfs -o pagesize=1G none /run/pages
echo 0 >/sys/fs/cgroup/holder/cpuset.mems
sh -c 'echo $$ >/sys/fs/cgroup/holder/cgroup.procs; exec fallocate -l 1G {HELD}'
"""
# Pages that a file got before the container was bound would stay where they are.
BOUND = "grep -q 'Mems_allowed_list:[[:space:]]*[01]$' /proc/self/status"


def pod_with_pages(name: str, size: str, amount: str) -> dict[str, Any]:
    """A pod with two CPUs that takes huge pages once its memory is bound.

    A call to fallocate that is interrupted, or finds none, is not repeated by the kernel.
    """
    wait = f"until {BOUND}; do sleep 0.1; done"
    take = f"until fallocate -l {amount[:-1]} /pages/taken; do sleep 0.1; done"
    take = f"{wait}; {take}; sleep 1000000"
    body = pod(name, ("sh", "-c", take), cpu="2")
    container = body["spec"]["containers"][0]
    for amounts in container["resources"].values():
        amounts[f"hugepages-{size}"] = amount
    container["volumeMounts"] = [{"name": "pages", "mountPath": "/pages"}]
    body["spec"]["volumes"] = [{"name": "pages", "emptyDir": {"medium": f"HugePages-{size}"}}]
    return body


@pytest.fixture(scope="module")
def node(vm_lab: LabFolder) -> RunningVmLab:
    """The node; its kubelet counts pages when it starts."""
    lab = vm_up(vm_lab)
    for numa_node in (0, 1):
        file = PAGES.format(node=numa_node, kib=KIB["2Mi"], file="nr_hugepages")
        lab.write(file, str(SMALL_PAGES))
    lab.machine("stop-kubelet; start-kubelet", lab.patience_seconds)
    lab.eventually(lambda: allocatable(lab), {"2Mi": "64Mi", "1Gi": "2Gi"})
    lab.apply(POLICY)
    lab.wait_in_force()
    return lab


def allocatable(lab: RunningVmLab) -> dict[str, str]:
    """What the kubelet offers of each size."""
    found = lab.cluster.api.get(f"/api/v1/nodes/{lab.node}")["status"]["allocatable"]
    return {size: found.get(f"hugepages-{size}") for size in KIB}


def free(lab: RunningVmLab, size: str) -> list[int]:
    """Pages of a size that are free on each NUMA node, by the kernel."""
    files = [PAGES.format(node=node, kib=KIB[size], file="free_hugepages") for node in (0, 1)]
    found = lab.read(*files)
    return [int(found[file]) for file in files]


def wait_taken(lab: RunningVmLab, name: str, size: str, left: list[int]) -> None:
    """Wait until a pod, which must not end meanwhile, has left so many pages free."""

    def is_taken() -> bool:
        lab.wait_running(name)
        return free(lab, size) == left

    try:
        lab.wait(is_taken, f"{name} to leave {left} pages of {size} free")
    except LabError as error:
        log = lab.machine(f"tail -n 3 /run/pods/default_{name}_*/main/*.log; true")
        raise LabError(f"{error}; its log ends with:\n{log}") from error


def reported_free(lab: RunningVmLab, size: str) -> list[int]:
    """Pages of a size that are free on each NUMA node, by the status."""
    assignment = lab.assignment()
    found = assignment.status.free_hugepages if assignment and assignment.status else ()
    return [one.pages[size] for one in sorted(found, key=lambda one: one.numa_node)]


def numa_node_of(lab: RunningVmLab, name: str) -> str:
    """The NUMA nodes of a pod's container, once it is exclusive and the kernel has them."""
    uid = lab.pod(name)["metadata"]["uid"]

    def is_exclusive() -> bool:
        assignment = lab.assignment()
        found = assignment.status.containers if assignment and assignment.status else ()
        return any(one.pod_uid == uid and one.exclusive for one in found)

    lab.wait(is_exclusive, f"{name} to be exclusive")
    group, _ = lab.look().of(lab.container_id(name))
    return group.mems_effective


def test_pages_come_from_the_numa_node_that_has_them_free(node: RunningVmLab) -> None:
    node.machine(HOLD_OF_NODE_0)
    try:
        assert free(node, "1Gi") == [0, 1]
        node.eventually(lambda: reported_free(node, "1Gi"), [0, 1])
        node.apply(pod_with_pages("large", "1Gi", "1Gi"))
        node.wait_running("large")
        assert numa_node_of(node, "large") == "1"
        wait_taken(node, "large", "1Gi", [0, 0])
        node.apply(pod_with_pages("late", "1Gi", "1Gi"))
        node.eventually(lambda: [one.pod for one in node.wait_in_force().spec.refused], ["late"])
        (refusal,) = node.wait_in_force().spec.refused
        assert refusal.reason == "NotEnoughMemory"
        assert "0: 2 CPUs + 0 B hugepages-1Gi (1 GiB used by others)" in (refusal.message or "")
        node.apply(pod_with_pages("small", "2Mi", "8Mi"))
        node.wait_running("small")
        assert numa_node_of(node, "small") == "0"
        wait_taken(node, "small", "2Mi", [SMALL_PAGES - 4, SMALL_PAGES])
    finally:
        node.machine(f"rm -f {HELD}; umount /run/pages; rmdir /sys/fs/cgroup/holder")


def attaching_keeps_cpus(node: RunningVmLab) -> bool:
    """Whether a task keeps its CPUs in a cgroup with the set of its last one: since Linux 6.2.

    The first task of a machine begins without the isolated CPUs. Source: Linux 6.2,
    kernel/cgroup/cpuset.c, `cpuset_attach`; seen with 6.12.
    """
    release = node.machine("uname -r").strip()
    return tuple(int(part) for part in release.split(".")[:2]) >= (6, 2)


def test_isolated_cpus_serve_exclusive_containers_first_and_nobody_else(
    node: RunningVmLab,
) -> None:
    def allowed(*names: str) -> list[str]:
        return [str(node.allowed(name)) for name in names]

    node.clear()
    reserved = {"cpus": "0-1"}
    node.apply(policy(reserved=reserved), pod("neighbour"))
    node.wait_running("neighbour")
    assert node.wait_in_force().status is not None
    begins_on = "0-6" if attaching_keeps_cpus(node) else "0-7"
    node.eventually(lambda: allowed("neighbour"), [begins_on])
    node.apply(policy(reserved=reserved, isolatedCPUs="ExclusiveOnly"))
    node.eventually(lambda: allowed("neighbour"), ["0-6"])

    node.apply(pod("first", cpu="1"), pod("second", cpu="1"))
    node.wait_running("first", "second")
    node.eventually(node.reported_exclusive, [True, True])
    sets = {one.pod: one.cpus for one in node.wait_in_force().spec.containers}
    assert sum(CpuSet.parse("7") == each for each in sets.values()) == 1
    shared = CpuSet.parse("0-6") - CpuSet.union(sets.values())
    assert allowed("neighbour", *sets) == [str(shared), *map(str, sets.values())]

    node.apply(policy(reserved=reserved))
    node.wait_in_force()
    assert allowed("neighbour", *sets) == [str(shared), *map(str, sets.values())]
    isolated = next(name for name, cpus in sets.items() if cpus == CpuSet.parse("7"))
    node.delete("pod", isolated)
    node.eventually(lambda: allowed("neighbour"), [str(shared | CpuSet.parse("7"))])


@before_release
def test_memory_that_was_used_before_is_not_promised_where_it_is(node: RunningVmLab) -> None:
    """The kernel has it on NUMA node 0; in proportion, half of it would count on each."""
    node.clear()
    reserved = {"cpus": "0-1"}
    node.apply(policy(reserved=reserved))
    fill = "taskset 4 dd if=/dev/zero bs=600M count=1 | sleep 1000000"  # on CPU 2
    node.apply(pod("beside", ("sh", "-c", fill), cpu="500m", memory="700Mi"))
    node.wait_running("beside")
    uid = node.pod("beside")["metadata"]["uid"]

    def used_mib() -> int:
        assignment = node.assignment()
        listed = assignment.status.unbound_memory if assignment and assignment.status else ()
        return sum(one.bytes.get("0", 0) >> 20 for one in listed if one.pod_uid == uid)

    # What is read while the pod still fills it stands until it differs by an eighth.
    node.wait(lambda: used_mib() >= 520, "the memory of `beside` to be reported")
    single = {"policy": "SingleNUMANode"}
    node.apply(policy(reserved=reserved, topology=single, memory={"policy": "SingleNUMA"}))
    assignment = node.wait_in_force()
    assert assignment.status is not None
    assert assignment.status.topology is not None
    first, _ = assignment.status.topology.numa_nodes
    late_mib = (first.memory_bytes >> 20) - 1024 - 500
    assert 500 < late_mib < 2048
    node.apply(pod("late", cpu="1", memory=f"{late_mib}Mi"))
    node.wait_running("late")
    assert numa_node_of(node, "late") == "1"


@before_release
def test_promised_memory_that_another_pod_has_is_named(node: RunningVmLab) -> None:
    """A minute passes between two looks of the enforcer, and two must find it."""
    node.clear()
    single = {"policy": "SingleNUMANode"}
    node.apply(policy(reserved={"cpus": "0-1"}, topology=single, memory={"policy": "SingleNUMA"}))
    assignment = node.wait_in_force()
    assert assignment.status is not None
    assert assignment.status.topology is not None
    first, _ = assignment.status.topology.numa_nodes
    usual_mib = (first.memory_bytes >> 20) - 1024 - 2 * SMALL_PAGES
    node.apply(pod("promised", cpu="1", memory=f"{usual_mib - 300}Mi"))
    node.wait_running("promised")
    assert numa_node_of(node, "promised") == "0"
    fill = "taskset 8 dd if=/dev/zero bs=500M count=1 | sleep 1000000"  # on CPU 3
    node.apply(pod("fill", ("sh", "-c", fill)))
    node.wait_running("fill")

    def said() -> str:
        found = node.assignment()
        conditions = found.status.conditions if found and found.status else ()
        ready = next(one for one in conditions if one.type == "Ready")
        return f"{ready.status} {ready.reason} {ready.message}"

    node.wait(lambda: "True PromisedMemoryInUse" in said(), "the promised memory to be missed")
    assert "NUMA node 0: " in said()
    assert "NUMA node 1: " not in said()
