"""Answers of a real runtime to updates of cpusets, and what the kernel has afterwards."""

from collections.abc import AsyncIterator

import pytest
from grpclib.exceptions import GRPCError

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime.cri_client import CriClient
from numapin_enforcer.runtime.interface import ContainerResources, CriNotFoundError, CriRefusedError
from numapin_lab.node.played_kubelet import FIRST_ACT, Kubelet
from support.real.kernel_cgroups import cpus_of

NO_SUCH_CPU, NO_SUCH_NODE = CpuSet.from_mask(1 << 60_000), MemSet([7])


@pytest.fixture
async def runtime(kubelet: Kubelet) -> AsyncIterator[CriClient]:
    async with CriClient(kubelet.runtime.socket) as client:
        yield client


@pytest.mark.parametrize(
    ("resources", "reason", "left"),
    [
        (ContainerResources(NO_SUCH_CPU), "numerical result out of range", "1"),
        (ContainerResources(CpuSet(), NO_SUCH_NODE), "invalid argument", "1"),
        (ContainerResources(CpuSet([0]), NO_SUCH_NODE), "invalid argument", "0"),
    ],
    ids=["missing CPU", "missing NUMA node", "half of the update made"],
)
async def test_a_refusal_has_the_reason_but_not_what_was_written(
    kubelet: Kubelet, runtime: CriClient, resources: ContainerResources, reason: str, left: str
) -> None:
    pod = await kubelet.run_pod("pod")
    container_id = await kubelet.run(pod, "main")
    await runtime.update_resources(container_id, ContainerResources(CpuSet([1])))
    with pytest.raises(CriRefusedError, match=reason):
        await runtime.update_resources(container_id, resources)
    assert cpus_of(f"{pod.cgroup}/{container_id}") == left


async def test_empty_sets_change_nothing(kubelet: Kubelet, runtime: CriClient) -> None:
    pod = await kubelet.run_pod("pod")
    container_id = await kubelet.run(pod, "main")
    await runtime.update_resources(container_id, ContainerResources(CpuSet([1])))
    await runtime.update_resources(container_id, ContainerResources(CpuSet()))
    assert cpus_of(f"{pod.cgroup}/{container_id}") == "1"
    assert await kubelet.remembered(container_id) == "1"


async def test_an_update_of_a_removed_container_is_not_found(
    kubelet: Kubelet, runtime: CriClient
) -> None:
    pod = await kubelet.run_pod("pod")
    container_id = await kubelet.run(pod, "main")
    await kubelet.remove_container(container_id)
    with pytest.raises(CriNotFoundError):
        await runtime.update_resources(container_id, ContainerResources(CpuSet([1])))


async def test_an_update_before_the_start_can_prevent_the_start(
    kubelet: Kubelet, runtime: CriClient
) -> None:
    """Why no update is sent then: the runtime accepts any value, and the start fails."""
    pod = await kubelet.run_pod("pod")
    container_id = await kubelet.create(pod, "main", FIRST_ACT)
    await runtime.update_resources(container_id, ContainerResources(NO_SUCH_CPU))
    with pytest.raises(GRPCError, match="60000"):
        await kubelet.begin(container_id)
