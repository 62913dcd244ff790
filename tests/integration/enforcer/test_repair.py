"""External cpuset changes are reverted, and the end of the enforcer changes no cpuset."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from grpclib.exceptions import GRPCError

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_lab.node.played_kubelet import Kubelet, Pod
from numapin_lab.processes.daemons import kill, stop
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of, limit_of, pids_of, write_cpus
from support.real.sampled_cpus import sampled
from support.real.waiting import eventually


async def test_an_overwritten_exclusive_container_is_reverted_counted_and_reported(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    write_cpus(cgroup, "0")
    await eventually(lambda: cpus_of(cgroup) == "1", "the repair")
    await eventually(lambda: node.status["driftCount"] == 1, "the count")
    assert node.status["driftCauses"] == {"OwnerMoved": 1}
    (note,) = await eventually(lambda: node.notes("CpusetDrift"), "the Event")
    assert note.startswith("container default/pod-")
    assert "/main had cpus 0 instead of 1" in note


async def test_a_container_that_was_moved_onto_an_exclusive_cpu_is_moved_off(
    node: Node, kubelet: Kubelet
) -> None:
    exclusive, other = (
        await kubelet.run_pod("exclusive"),
        await kubelet.run_pod("other", "besteffort"),
    )
    await kubelet.run(exclusive, "main")
    intruder = f"{other.cgroup}/{await kubelet.run(other, 'main')}"
    await node.start()
    await node.applied(spec(assigned(exclusive.uid, "main", "1"), shared="0"))
    for cgroup in (f"{kubelet.kubepods}/besteffort", other.cgroup, intruder):
        with suppress(PermissionError):  # its parent was reverted already
            write_cpus(cgroup, "0-1")
    await eventually(lambda: cpus_of(intruder) == "0")
    await eventually(lambda: cpus_of(other.cgroup) == "0")
    await eventually(lambda: node.status["driftCount"] >= 1)


async def test_a_kubelet_start_changes_nothing(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    with sampled(cgroup) as seen:
        write_cpus(kubelet.kubepods, "0-1")
        await asyncio.sleep(0.3)
    assert seen == {"1"}
    assert node.status["driftCount"] == 0


async def test_any_update_over_cri_keeps_the_pin(
    kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    container_id = cgroup.rpartition("/")[2]
    await kubelet.until_remembered(container_id, "1")
    with sampled(cgroup) as seen:
        await kubelet.update(container_id, pb.LinuxContainerResources(cpu_shares=512))
    assert seen == {"1"}


async def test_an_update_that_fails_half_way_is_reverted(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    """The runtime writes the CPUs, is refused the NUMA node, and writes the CPUs once more."""
    _, cgroup = exclusive
    container_id = cgroup.rpartition("/")[2]
    await kubelet.until_remembered(container_id, "1")
    with pytest.raises(GRPCError, match="invalid argument"):
        await kubelet.update(
            container_id, pb.LinuxContainerResources(cpuset_cpus="0", cpuset_mems="7")
        )
    await eventually(lambda: cpus_of(cgroup) == "1", "the repair")
    await eventually(lambda: node.status["driftCount"] in {1, 2}, "the count")
    await kubelet.until_remembered(container_id, "1")


async def test_a_set_that_others_sent_to_the_runtime_is_replaced(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    """Otherwise any later update would write that set again."""
    _, cgroup = exclusive
    container_id = cgroup.rpartition("/")[2]
    await kubelet.until_remembered(container_id, "1")
    await kubelet.update(container_id, pb.LinuxContainerResources(cpuset_cpus="0"))
    await eventually(lambda: node.status["driftCount"] > 0, "the repair")
    await kubelet.until_remembered(container_id, "1")
    await eventually(node.in_force)
    with sampled(cgroup) as seen:
        await kubelet.update(container_id, pb.LinuxContainerResources(cpu_shares=512))
    assert seen == {"1"}


async def test_an_update_of_a_shared_container_leaves_it_in_the_pool(
    kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, _ = exclusive
    other = await kubelet.run(pod, "sidecar")
    cgroup = f"{pod.cgroup}/{other}"
    await eventually(lambda: cpus_of(cgroup) == "0")
    with sampled(cgroup) as seen:
        await kubelet.update(other, pb.LinuxContainerResources(cpu_shares=512))
    assert seen == {"0"}
    assert await kubelet.remembered(other) == ""


async def test_a_set_that_a_static_kubelet_left_in_the_runtime_returns_once(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    """The kubelet sent one for each shared container, before its policy became none."""
    pod, _ = exclusive
    other = await kubelet.run(pod, "sidecar")
    cgroup = f"{pod.cgroup}/{other}"
    await eventually(lambda: cpus_of(cgroup) == "0")
    await kubelet.update(other, pb.LinuxContainerResources(cpuset_cpus="0-1"))
    await eventually(lambda: cpus_of(cgroup) == "0", "the repair")
    await eventually(lambda: node.status["driftCauses"] == {"Intrusion": 1}, "the count")
    await kubelet.until_remembered(other, "0")
    with sampled(cgroup) as seen:
        await kubelet.update(other, pb.LinuxContainerResources(cpu_shares=512))
    assert seen == {"0"}


async def test_the_runtimes_record_does_not_move_a_former_exclusive_container_back(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    container_id = cgroup.rpartition("/")[2]
    await kubelet.until_remembered(container_id, "1")
    await node.applied(spec(shared="0"))
    await kubelet.until_remembered(container_id, "0")
    with sampled(cgroup) as seen:
        await kubelet.update(container_id, pb.LinuxContainerResources(cpu_shares=512))
    assert seen == {"0"}


async def test_no_cpu_is_exclusive_while_the_runtime_may_give_it_to_its_former_container(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    former, cgroup = exclusive
    heir = await kubelet.run_pod("heir")
    heir_cgroup = f"{heir.cgroup}/{await kubelet.run(heir, 'main')}"
    waits = assigned(heir.uid, "main", "0", exclusive=False)
    await node.applied(spec(assigned(former.uid, "main", "1"), waits, shared="0"))
    await kubelet.until_remembered(cgroup.rpartition("/")[2], "1")
    pid = kubelet.runtime.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        node.assign(spec(assigned(heir.uid, "main", "1"), shared="0"))
        await eventually(lambda: (cpus_of(cgroup), cpus_of(heir_cgroup)) == ("0", "1"))
        await eventually(lambda: "the runtime is being updated" in node.condition("Ready")[2])
        (status,) = node.status["containers"]
        assert (status["cpus"], status["exclusive"]) == ("1", False)
    finally:
        os.kill(pid, signal.SIGCONT)
    await eventually(node.in_force)
    (status,) = node.status["containers"]
    assert (status["cpus"], status["exclusive"]) == ("1", True)
    await kubelet.until_remembered(cgroup.rpartition("/")[2], "0")


async def test_an_exclusive_container_moved_while_the_enforcer_was_down_is_moved_back_once(
    node: Node, kubelet: Kubelet
) -> None:
    """The runtime gets no update to the shared pool meanwhile: it would overwrite the pin."""
    pod = await kubelet.run_pod("exclusive")
    container_id = await kubelet.run(pod, "main", quota_us=100_000)
    cgroup = f"{pod.cgroup}/{container_id}"
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await kubelet.until_remembered(container_id, "1")
    await eventually(lambda: limit_of(cgroup) == "-1")
    for _ in range(5):
        await node.stop(signal.SIGKILL)
        write_cpus(cgroup, "0")
        await node.start()
        await eventually(lambda: cpus_of(cgroup) == "1")
        with sampled(cgroup) as seen:
            await eventually(lambda: node.probe("readyz")[0] == 200)
            await kubelet.until_remembered(container_id, "1")
            await asyncio.sleep(0.2)
        assert seen == {"1"}
        assert node.status["driftCount"] == 0


@pytest.mark.parametrize(
    "newer", [spec(shared="0"), {"mode": "None"}], ids=["shares", "given back"]
)
async def test_a_container_that_became_shared_while_the_enforcer_was_down_is_not_moved_back(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str], newer: dict[str, Any]
) -> None:
    """The enforcer gets the new assignment before it has any container name."""
    _, cgroup = exclusive
    container_id = cgroup.rpartition("/")[2]
    await kubelet.until_remembered(container_id, "1")
    await node.stop(signal.SIGKILL)
    node.assign(newer)
    pid = kubelet.runtime.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        await node.start()
        shared = newer.get("pools", {"shared": "0-1"})["shared"]
        await eventually(lambda: cpus_of(cgroup) == shared)
    finally:
        os.kill(pid, signal.SIGCONT)
    await eventually(node.in_force)
    await kubelet.until_remembered(container_id, shared)
    with sampled(cgroup) as seen:
        await kubelet.update(container_id, pb.LinuxContainerResources(cpu_shares=512))
    assert seen == {shared}


async def test_a_kill_and_a_restart_change_no_cpuset(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str]
) -> None:
    pod, cgroup = exclusive
    with sampled(cgroup) as seen, sampled(f"{pod.cgroup}/{pod.sandbox_id}") as beside:
        await node.stop(signal.SIGKILL)
        await node.start()
        await eventually(lambda: node.probe("readyz")[0] == 200, "/readyz")
        await asyncio.sleep(0.5)
    assert (seen, beside) == ({"1"}, {"0"})
    assert node.status["driftCount"] == 0


async def test_the_count_of_external_changes_survives_a_restart(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    write_cpus(cgroup, "0")
    await eventually(lambda: node.status["driftCount"] == 1)
    await node.stop(signal.SIGKILL)
    await node.start()
    write_cpus(cgroup, "0")
    await eventually(lambda: cpus_of(cgroup) == "1")
    await eventually(lambda: node.probe("readyz")[0] == 200)
    assert node.status["driftCount"] >= 1
    assert node.status["driftCauses"]["OwnerMoved"] >= 1


async def test_sigterm_ends_it_cleanly_and_every_pin_stays(
    node: Node, exclusive: tuple[Pod, str]
) -> None:
    _, cgroup = exclusive
    with sampled(cgroup) as seen:
        assert await node.stop(signal.SIGTERM) == 0
        await asyncio.sleep(0.2)
    assert seen == {"1"}
    assert "Traceback" not in node.log


@pytest.mark.parametrize("end", [kill, partial(stop, grace_seconds=60)], ids=["killed", "ended"])
async def test_a_restarted_containerd_finds_its_pins(
    node: Node, kubelet: Kubelet, exclusive: tuple[Pod, str], end: Callable[[int], None]
) -> None:
    pod, cgroup = exclusive
    container_id = cgroup.rpartition("/")[2]
    await kubelet.until_remembered(container_id, "1")
    inside = pids_of(cgroup)
    with sampled(cgroup) as seen:
        pid = kubelet.runtime.daemon.pid()
        assert pid is not None
        await asyncio.to_thread(end, pid)
        await asyncio.to_thread(kubelet.runtime.start)
        await kubelet.remove_container(await kubelet.run(pod, "later"))
        await kubelet.update(container_id, pb.LinuxContainerResources(cpu_shares=512))
    assert (seen, pids_of(cgroup)) == ({"1"}, inside)
    await kubelet.remove_container(container_id)
    again = await kubelet.run(pod, "main")
    await eventually(lambda: cpus_of(f"{pod.cgroup}/{again}") == "1")
    await eventually(lambda: node.probe("readyz")[0] == 200)
