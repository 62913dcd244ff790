"""The enforcer's answers beside those of the real kubelet, for the same pods."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from grpclib.client import Channel
from grpclib.exceptions import GRPCError

from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from numapin_enforcer.runtime.generated.podresources_v1_grpc import PodResourcesListerStub
from numapin_lab.running_lab import RunningLab, pod, policy
from support.real.waiting import eventually

pytestmark = pytest.mark.from_source("its enforcer has one more option")

UNKNOWN = pb.GetPodResourcesRequest(pod_name="unknown", pod_namespace="default")


@contextmanager
def served(lab: RunningLab) -> Iterator[Path]:
    """The enforcer answers on this socket."""
    usual = lab.agent("enforcer")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pod-resources" / "kubelet.sock"
        serving = replace(usual, options=(*usual.options, f"--serve-pod-resources={path}"))
        usual.stop()
        serving.start()
        serving.wait_ready()
        try:
            yield path
        finally:
            serving.stop()
            assert not path.exists()
            usual.start()
            usual.wait_ready()


async def call(path: Path, name: str, request: Any) -> Any:
    """One call, as a client of the kubelet makes it."""
    channel = Channel(path=str(path))
    try:
        return await getattr(PodResourcesListerStub(channel), name)(request)
    finally:
        channel.close()


async def listed(path: Path) -> dict[str, pb.PodResources]:
    """The pods of the default namespace."""
    answer = await call(path, "List", pb.ListPodResourcesRequest())
    return {one.name: one for one in answer.pod_resources if one.namespace == "default"}


async def refusal(path: Path) -> tuple[object, object]:
    """How a pod that does not exist is refused."""
    with pytest.raises(GRPCError) as refused:
        await call(path, "Get", UNKNOWN)
    return refused.value.status, refused.value.message


async def test_the_answers_are_the_kubelets_with_cpus(lab: RunningLab) -> None:
    theirs = lab.cluster.kubelet.pod_resources_socket
    lab.apply(policy())
    lab.wait_in_force()
    with served(lab) as ours:
        await eventually(ours.is_socket)
        lab.apply(pod("owner", cpu="1"), pod("neighbour"))
        lab.wait_running("owner", "neighbour")
        lab.wait_in_force()

        async def has_cpus() -> bool:
            return list((await listed(ours))["owner"].containers[0].cpu_ids) == [1]

        await eventually(has_cpus)
        found, without = await listed(ours), await listed(theirs)
        found["owner"].containers[0].ClearField("cpu_ids")
        assert found == without
        assert found.keys() == {"owner", "neighbour"}
        request = pb.GetPodResourcesRequest(pod_name="owner", pod_namespace="default")
        answer = await call(ours, "Get", request)
        assert answer.pod_resources.containers[0].cpu_ids == [1]
        assert await refusal(ours) == await refusal(theirs)
        node = await call(ours, "GetAllocatableResources", pb.AllocatableResourcesRequest())
        assert node.cpu_ids == [1], "CPU 0 is reserved"
