"""CFS quotas on a real kernel and containerd: removed for exclusive containers, then restored."""

from functools import partial

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_lab.node.played_kubelet import Kubelet, Pod
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import limit_of, write_limit
from support.real.waiting import eventually

LIFTED = "-1"


async def limited_pod(kubelet: Kubelet) -> tuple[Pod, str, str]:
    """A Guaranteed pod of two containers, limited as the kubelet limits them."""
    pod = await kubelet.run_pod("exclusive")
    write_limit(pod.cgroup, 150_000)
    main = await kubelet.run(pod, "main", quota_us=100_000)
    side = await kubelet.run(pod, "side", quota_us=50_000)
    return pod, f"{pod.cgroup}/{main}", f"{pod.cgroup}/{side}"


def limits(*cgroups: str) -> list[str]:
    return [limit_of(cgroup) for cgroup in cgroups]


async def test_the_quotas_of_an_exclusive_container_and_its_pod_are_removed_and_restored(
    node: Node, kubelet: Kubelet
) -> None:
    pod, main, side = await limited_pod(kubelet)
    cgroups = (pod.cgroup, main, side)
    before = limits(*cgroups)
    assert before == ["150000", "100000", "50000"]
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    freed = [LIFTED, LIFTED, "50000"]
    await eventually(lambda: limits(*cgroups) == freed)
    await node.applied(spec())
    await eventually(lambda: limits(*cgroups) == before)


async def test_a_resize_restores_no_quota_of_an_exclusive_container(
    node: Node, kubelet: Kubelet
) -> None:
    pod, main, side = await limited_pod(kubelet)
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: limits(main) == [LIFTED])
    update = partial(
        kubelet.update, main.rpartition("/")[2], pb.LinuxContainerResources(cpu_shares=512)
    )
    await update()
    await eventually(lambda: limits(pod.cgroup, main) == [LIFTED, LIFTED])
    await node.applied({"mode": "None"})
    await eventually(lambda: limits(pod.cgroup, main, side) == ["150000", "100000", "50000"])


async def test_quotas_removed_before_a_kill_are_restored_after_it(
    node: Node, kubelet: Kubelet
) -> None:
    pod, main, side = await limited_pod(kubelet)
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: limits(pod.cgroup, main) == [LIFTED, LIFTED])
    await node.stop(9)
    node.assign(spec())
    await node.start()
    await eventually(lambda: limits(pod.cgroup, main, side) == ["150000", "100000", "50000"])


async def test_release_restores_quotas_after_a_kill(node: Node, kubelet: Kubelet) -> None:
    pod, main, side = await limited_pod(kubelet)
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: limits(pod.cgroup, main) == [LIFTED, LIFTED])
    await node.stop(9)
    node.launch(["--release", *(f"--{name}={value}" for name, value in node.options.items())])
    await eventually(node.ended)
    assert node.process is not None
    assert node.process.returncode == 0, node.log
    assert limits(pod.cgroup, main, side) == ["150000", "100000", "50000"]
    await kubelet.update(main.rpartition("/")[2], pb.LinuxContainerResources(cpu_shares=512))
    assert limits(main) == ["100000"]


async def test_quotas_stay_where_the_policy_says_so(node: Node, kubelet: Kubelet) -> None:
    pod, main, _ = await limited_pod(kubelet)
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0", cpuQuota="Keep"))
    assert limits(pod.cgroup, main) == ["150000", "100000"]
    await kubelet.run(pod, "debugger")  # without a limit of its own: it keeps that of the pod
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: limits(main) == [LIFTED])
    assert limits(pod.cgroup) == ["150000"]
