"""A kubelet on a real socket, and the server before it."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerStatus, PoolsInForce
from numapin_enforcer.goals import AssignmentGoal
from numapin_enforcer.lister.serving import PodResourcesServer
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from numapin_enforcer.runtime.generated.podresources_v1_grpc import (
    PodResourcesListerBase,
    PodResourcesListerStub,
)
from numapin_enforcer.status.in_force.summary import Summary
from support.fakes.manual_clock import ManualClock
from support.real.waiting import eventually
from support.values.specs_and_trees import assigned, machine, spec

GPU = pb.ContainerDevices(resource_name="example.com/gpu", device_ids=["gpu-0"])


class FakeKubelet(PodResourcesListerBase):
    """Has the pod d/p with a device; refuses other pods as a kubelet does."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failure: GRPCError | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.more_devices = 0

    async def List(self, stream: Stream[Any, Any]) -> None:  # noqa: N802
        await self._asked("List", stream)
        await stream.send_message(pb.ListPodResourcesResponse(pod_resources=[self._pod()]))

    async def Get(self, stream: Stream[Any, Any]) -> None:  # noqa: N802
        asked = await self._asked("Get", stream)
        if (asked.pod_namespace, asked.pod_name) != ("d", "p"):
            found = f"pod {asked.pod_name} in namespace {asked.pod_namespace} not found"
            raise GRPCError(Status.UNKNOWN, found)
        await stream.send_message(pb.GetPodResourcesResponse(pod_resources=self._pod()))

    async def GetAllocatableResources(self, stream: Stream[Any, Any]) -> None:  # noqa: N802
        await self._asked("GetAllocatableResources", stream)
        await stream.send_message(pb.AllocatableResourcesResponse(devices=[GPU]))

    async def _asked(self, name: str, stream: Stream[Any, Any]) -> Any:
        request = await stream.recv_message()
        self.asked.append(name)
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        return request

    def _pod(self) -> pb.PodResources:
        more = [pb.ContainerDevices(resource_name="x" * 1000)] * self.more_devices
        container = pb.ContainerResources(name="c", devices=[GPU, *more])
        return pb.PodResources(name="p", namespace="d", containers=[container])


def passed(clock: ManualClock, cpus: str = "2-3") -> tuple[Pass, Summary]:
    """A pass that has read back these CPUs of the container c."""
    topology, wanted = machine(), spec(assigned("c", cpus))
    goal = AssignmentGoal(wanted, topology, {}, {}, frozenset())
    one = Pass(began_seconds=0.0, ended_seconds=clock.monotonic(), topology=topology, goal=goal)
    found = ContainerStatus("1", "c", CpuSet.parse(cpus), MemSet(), exclusive=True)
    return one, Summary((found,), PoolsInForce())


@dataclass
class Scene:
    """A kubelet and the server before it, with a client."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    kubelet: FakeKubelet = field(default_factory=FakeKubelet)

    def __post_init__(self) -> None:
        self.path, self.theirs = self.folder / "ours" / "kubelet.sock", self.folder / "kubelet.sock"
        self.server = PodResourcesServer(self.path, self.theirs, 60.0, self.clock)
        self.channel = Channel(path=str(self.path))
        self.client = PodResourcesListerStub(self.channel)

    async def lists(self) -> pb.ContainerResources:
        """The container of the only pod."""
        (pod,) = (await self.client.List(pb.ListPodResourcesRequest())).pod_resources
        (container,) = pod.containers
        return container

    async def answers(self) -> bool:
        """Whether a client is answered; False if it asks too often."""
        try:
            return list((await self.lists()).cpu_ids) == [2, 3]
        except GRPCError as error:
            if error.status is not Status.RESOURCE_EXHAUSTED:
                raise
            return False

    async def refusal(self) -> tuple[Status, str]:
        """How a list is refused."""
        with pytest.raises(GRPCError) as refused:
            await self.lists()
        return refused.value.status, str(refused.value.message)

    async def begins(self) -> None:
        """The socket is served."""
        await eventually(self.path.is_socket, "the socket")
