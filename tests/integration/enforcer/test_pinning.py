"""The enforcer on a real kernel, containerd and API server: on which CPUs containers run."""

import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_enforcer.node.boot_id import read_boot_id
from numapin_lab.node.cgroups import MOUNTS, hierarchies
from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet, make_cgroup
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import VERSION, cpus_of
from support.real.waiting import PATIENCE_SECONDS, eventually

ALL_MEMS = Path("/sys/devices/system/node/has_memory").read_text().strip()


async def test_a_running_container_gets_its_cpu_and_all_others_leave_it(
    node: Node, kubelet: Kubelet
) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "besteffort"),
    )
    exclusive_id, other_id = await kubelet.run(exclusive, "main"), await kubelet.run(other, "main")
    node.assign(spec())
    await node.start()
    status = await node.applied(spec(assigned(exclusive.uid, "main", "1"), shared="0"))
    assert cpus_of(f"{exclusive.cgroup}/{exclusive_id}") == "1"
    assert cpus_of(f"{exclusive.cgroup}/{exclusive.sandbox_id}") == "0"
    assert cpus_of(f"{other.cgroup}/{other_id}") == "0"
    assert cpus_of(f"{other.cgroup}/{other.sandbox_id}") == "0"
    container = {"podUID": exclusive.uid, "container": "main", "cpus": "1", "exclusive": True}
    assert status["containers"] == [container | {"mems": ALL_MEMS}]
    assert status["pools"] == {"reserved": "0", "shared": "0", "exclusive": "1"}
    assert status["running"] == [exclusive.uid]
    assert status["cgroup"] == {"version": VERSION, "driver": "cgroupfs"}
    runtime = await eventually(lambda: node.status.get("runtime"), "the runtime to be updated")
    assert runtime["name"] == "containerd"
    nodes = status["topology"]["numaNodes"]
    assert CpuSet.union(CpuSet.parse(one["cpus"]) for one in nodes) == CpuSet.parse("0-1")


async def test_a_container_is_pinned_before_its_first_instruction(
    node: Node, kubelet: Kubelet
) -> None:
    uids = [str(uuid.uuid4()) for _ in range(20)]
    await node.start()
    for uid in uids:
        await node.applied(spec(assigned(uid, "main", "1"), shared="0"))
        pod = await kubelet.run_pod("exclusive", uid=uid)
        await kubelet.run(pod, "main", FIRST_ACT)
        said = await eventually(partial(kubelet.output, pod, "main"))
        assert said == "Cpus_allowed_list:\t1"
        await kubelet.remove_pod(pod)


async def test_an_exclusive_container_and_the_shared_pool_swap_cpus(
    node: Node, kubelet: Kubelet
) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "burstable"),
    )
    exclusive_id, other_id = await kubelet.run(exclusive, "main"), await kubelet.run(other, "main")
    await node.start()
    await node.applied(spec(assigned(exclusive.uid, "main", "1"), shared="0"))
    await node.applied(spec(assigned(exclusive.uid, "main", "0"), shared="1", reserved="1"))
    assert cpus_of(f"{exclusive.cgroup}/{exclusive_id}") == "0"
    assert cpus_of(f"{other.cgroup}/{other_id}") == "1"
    assert cpus_of(f"{exclusive.cgroup}/{exclusive.sandbox_id}") == "1"


async def test_a_cpu_passes_from_one_exclusive_container_to_the_next(
    node: Node, kubelet: Kubelet
) -> None:
    first, second = await kubelet.run_pod("first"), await kubelet.run_pod("second")
    first_id, second_id = await kubelet.run(first, "main"), await kubelet.run(second, "main")
    await node.start()
    await node.applied(spec(assigned(first.uid, "main", "1"), shared="0"))
    status = await node.applied(spec(assigned(second.uid, "main", "1"), shared="0"))
    assert cpus_of(f"{first.cgroup}/{first_id}") == "0"
    assert cpus_of(f"{second.cgroup}/{second_id}") == "1"
    assert [one["podUID"] for one in status["containers"]] == [second.uid]


async def test_a_container_beside_an_exclusive_container_uses_the_shared_pool(
    node: Node, kubelet: Kubelet
) -> None:
    pod = await kubelet.run_pod("two")
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await kubelet.run(pod, "sidecar", FIRST_ACT)
    await kubelet.run(pod, "main", FIRST_ACT)
    assert await eventually(partial(kubelet.output, pod, "sidecar")) == "Cpus_allowed_list:\t0"
    assert await eventually(partial(kubelet.output, pod, "main")) == "Cpus_allowed_list:\t1"


async def test_a_cgroup_inside_an_exclusive_container_moves_with_it(
    node: Node, kubelet: Kubelet
) -> None:
    pod = await kubelet.run_pod("nesting")
    container_id = await kubelet.run(pod, "main")
    nested = f"{pod.cgroup}/{container_id}/inside"
    make_cgroup(nested)
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    assert cpus_of(nested) == "1"
    await node.applied(spec(assigned(pod.uid, "main", "0"), shared="1", reserved="1"))
    assert cpus_of(nested) == "0"
    for mount in hierarchies(MOUNTS.read_text()):
        (mount / nested).rmdir()


async def test_a_removed_pod_is_not_reported_as_running(node: Node, kubelet: Kubelet) -> None:
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main")
    await node.start()
    status = await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    assert status["running"] == [pod.uid]
    await kubelet.remove_pod(pod)
    await eventually(lambda: not node.status["running"], "the pod to be reported gone")
    assert node.status["containers"] == []


async def test_a_new_pod_is_fenced_when_it_is_created(node: Node, kubelet: Kubelet) -> None:
    await node.start()
    await node.applied(spec(assigned(str(uuid.uuid4()), "main", "1"), shared="0"))
    for qos in ("", "burstable", "besteffort"):
        pod = await kubelet.run_pod("newcomer", qos)
        await kubelet.run(pod, "main", FIRST_ACT)
        assert await eventually(partial(kubelet.output, pod, "main")) == "Cpus_allowed_list:\t0"
        assert cpus_of(pod.cgroup) == "0"


async def test_a_node_without_pods_is_ready(node: Node, kubelet: Kubelet) -> None:
    await node.start()
    await eventually(lambda: node.probe("readyz") == (200, "ok\n"))
    status = await node.applied(spec())
    await eventually(lambda: node.probe("readyz") == (200, "ok\n"))
    assert status["containers"] == []
    assert node.condition("Stalled") == ("False", "NotStalled", "")
    assert status["bootID"] == read_boot_id(Path("/proc"))
    age = datetime.now(UTC) - datetime.fromisoformat(status["lastPassTime"])
    assert age < timedelta(seconds=PATIENCE_SECONDS)
