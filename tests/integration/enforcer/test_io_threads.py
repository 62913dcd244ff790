"""Threads of io_uring of a shared container, on a real node: what the API server says of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numapin_campaigns.tenants.io_threads import IoThreads
from numapin_lab.node.played_kubelet import Kubelet
from support.real.cgroups import online_cpus
from support.real.enforcer_node import Node, assigned, spec
from support.real.io_threads import why_without
from support.real.kernel_cgroups import CPUSET, cpus_of
from support.real.waiting import eventually

pytestmark = [
    pytest.mark.skipif(bool(why_without()), reason=why_without()),
    pytest.mark.skipif(len(online_cpus()) > 2, reason="with more CPUs the set is written again"),
]


@contextmanager
def neighbour(folder: Path, cgroup: str) -> Iterator[IoThreads]:
    """A program that opened a ring while no CPU was exclusive.

    It begins outside, as the test's own process, and enters the container's cgroup before that.
    """
    with IoThreads(folder, CPUSET / cgroup) as program:
        program.do("ring")
        program.worker()
        yield program


async def test_a_container_on_whose_cpu_threads_of_another_one_run_is_not_exclusive(
    node: Node, kubelet: Kubelet, tmp_path: Path
) -> None:
    other = await kubelet.run_pod("other", "burstable")
    web = f"{other.cgroup}/{await kubelet.run(other, 'web')}"
    pod = await kubelet.run_pod("exclusive")
    await kubelet.run(pod, "main")
    node.assign(spec())
    await node.start()
    await node.applied(spec())
    owned = spec(assigned(pod.uid, "main", "1"), shared="0")
    with neighbour(tmp_path, web) as program:
        await node.applied(owned)
        await eventually(node.reports_exclusive, "the container to be reported exclusive")
        program.worker()
        await eventually(lambda: node.condition("Ready")[1] == "CPUsShared", "CPUsShared")
        assert not node.reports_exclusive()
        message = node.condition("Ready")[2]
        assert f"container default/pod-{pod.uid[:8]}/main shares CPU 1 with threads of" in message
        assert f"container default/{other.name}/web, such as 'iou-wrk-{program.pid}'" in message
        assert "RuntimeDefault" in message
        assert cpus_of(web) == "0"
    assert node.status["driftCount"] == 0
