"""What a resize does to a running container on a real kernel (cgroup v1) and containerd."""

import os
from functools import partial

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_lab.node.played_kubelet import Kubelet
from support.real.enforcer_node import Node, assigned, spec
from support.real.kernel_cgroups import cpus_of, limit_of, pids_of, write_limit
from support.real.waiting import eventually

LIFTED = "-1"


async def test_a_container_that_leaves_exclusivity_keeps_the_quota_of_its_resize(
    node: Node, kubelet: Kubelet
) -> None:
    """Also in the runtime, which repeats what it was sent last at any later update."""
    pod = await kubelet.run_pod("exclusive")
    write_limit(pod.cgroup, 100_000)
    main = await kubelet.run(pod, "main", quota_us=100_000)
    cgroup = f"{pod.cgroup}/{main}"
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: (limit_of(pod.cgroup), limit_of(cgroup)) == (LIFTED, LIFTED))
    update = partial(kubelet.update, main)
    write_limit(pod.cgroup, 150_000)
    await update(pb.LinuxContainerResources(cpu_quota=150_000, cpu_period=100_000))
    await node.applied(spec())
    await eventually(lambda: (limit_of(pod.cgroup), limit_of(cgroup)) == ("150000", "150000"))
    await kubelet.until_remembered(main, "0-1")
    await update(pb.LinuxContainerResources(cpu_shares=512))
    assert limit_of(cgroup) == "150000"


async def test_a_container_that_stays_exclusive_gets_no_quota_from_its_resize(
    node: Node, kubelet: Kubelet
) -> None:
    pod = await kubelet.run_pod("exclusive")
    main = await kubelet.run(pod, "main", quota_us=100_000)
    cgroup = f"{pod.cgroup}/{main}"
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: limit_of(cgroup) == LIFTED)
    await kubelet.until_remembered(main, "1")
    write_limit(pod.cgroup, 200_000)
    await kubelet.update(main, pb.LinuxContainerResources(cpu_quota=200_000, cpu_period=100_000))
    await eventually(lambda: (limit_of(pod.cgroup), limit_of(cgroup)) == (LIFTED, LIFTED))


async def test_the_kernel_remembers_which_cpus_a_thread_has_chosen_itself(
    node: Node, kubelet: Kubelet
) -> None:
    """While none of them is in the set of its container, it may use the whole set.

    Source: Linux 6.2, kernel/sched/core.c, `__set_cpus_allowed_ptr`. Before, every change of the
    set gave each thread the whole set.
    """
    pod = await kubelet.run_pod("exclusive")
    main = await kubelet.run(pod, "main")
    (pid,) = pids_of(f"{pod.cgroup}/{main}")
    os.sched_setaffinity(pid, {0})
    await node.start()
    await node.applied(spec(assigned(pod.uid, "main", "1"), shared="0"))
    await eventually(lambda: os.sched_getaffinity(pid) == {1})
    await node.applied(spec())
    await eventually(lambda: cpus_of(f"{pod.cgroup}/{main}") == "0-1")
    version = tuple(int(part) for part in os.uname().release.split(".")[:2])
    assert os.sched_getaffinity(pid) == ({0} if version >= (6, 2) else {0, 1})
