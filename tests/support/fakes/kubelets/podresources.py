"""A kubelet's podresources API, on a socket or in memory, that refuses what a kubelet refuses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from numapin_daemon.clock import Clock, SystemClock
from numapin_enforcer.podresources.devices import Devices, Entry, Places, grouped, rows_of
from numapin_enforcer.podresources.interface import PodResourcesError
from numapin_enforcer.podresources.pod_rows import PodAnswer
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb

Listed = list[tuple[str, str, tuple[int, ...]]]
"""Devices: resource, id, NUMA nodes."""

QPS, BURST = 100, 10
"""Source: kubelet pkg/kubelet/apis/podresources/constants.go."""

LIMITED = "rejected by rate limit"


@dataclass
class FakeKubelet:
    """Lists `devices`, and of each pod by `namespace/name` the devices of its containers."""

    devices: Listed = field(default_factory=list)
    pods: list[tuple[str, dict[str, Listed]]] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)
    asked: list[str] = field(default_factory=list)
    """The calls, also those that were refused."""
    failure: str = ""
    """Why it does not answer now, in memory."""
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared while calls must wait for their answer."""
    _tokens: float = BURST
    _counted_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.may_answer.set()
        self._counted_seconds = self.clock.monotonic()

    def has(self, name: str, **containers: Listed) -> None:
        self.pods.append((name, containers))

    def deletes(self, name: str) -> None:
        self.pods = [one for one in self.pods if one[0] != name]

    async def asked_by(self, name: str) -> bool:
        """Note a call; returns whether it is refused for coming too often."""
        self.asked.append(name)
        now_seconds = self.clock.monotonic()
        self._tokens = min(BURST, self._tokens + QPS * (now_seconds - self._counted_seconds))
        self._counted_seconds = now_seconds
        if self._tokens < 1:
            return True
        self._tokens -= 1
        await self.may_answer.wait()
        return False

    @asynccontextmanager
    async def connect(self, socket: Path) -> AsyncIterator["_InMemory"]:
        """A connection without a socket."""
        yield _InMemory(self, socket)


@dataclass
class _InMemory:
    kubelet: FakeKubelet
    socket: Path

    async def devices(self, places: Places) -> tuple[Devices, ...]:
        await self._call("GetAllocatableResources")
        return grouped(_entries(self.kubelet.devices), places)

    async def pods(self, places: Places) -> PodAnswer:
        await self._call("List")
        names = [name for name, _ in self.kubelet.pods]
        once = frozenset(name for name in names if names.count(name) == 1)
        rows = {
            name: rows_of(((one, _entries(has)) for one, has in containers.items()), places)
            for name, containers in self.kubelet.pods
        }
        return PodAnswer(once, {name: has for name, has in rows.items() if has and name in once})

    async def _call(self, name: str) -> None:
        is_refused = await self.kubelet.asked_by(name)
        if problem := self.kubelet.failure or (LIMITED if is_refused else ""):
            raise PodResourcesError(self.socket, problem)


def _entries(devices: Listed) -> list[Entry]:
    return [(one.resource_name, one.device_ids, _nodes(one)) for one in messages(devices)]


def _nodes(one: pb.ContainerDevices) -> list[int]:
    return [node.ID for node in one.topology.nodes]


def messages(devices: Listed) -> list[pb.ContainerDevices]:
    """One entry for each device and NUMA node, as a kubelet writes them."""
    return [
        pb.ContainerDevices(
            resource_name=resource,
            device_ids=[id_],
            topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=node)]) if node is not None else None,
        )
        for resource, id_, nodes in devices
        for node in nodes or (None,)
    ]


class Served:
    """The API of a `FakeKubelet`, which sends another answer instead of its own if one is set."""

    def __init__(self, kubelet: FakeKubelet) -> None:
        self.kubelet = kubelet
        self.pods_answer: pb.ListPodResourcesResponse | None = None
        self.devices_answer: pb.AllocatableResourcesResponse | None = None

    async def list_(
        self, stream: Stream[pb.ListPodResourcesRequest, pb.ListPodResourcesResponse]
    ) -> None:
        await self._accept(stream, "List")
        answer = pb.ListPodResourcesResponse(
            pod_resources=[
                pb.PodResources(
                    namespace=name.partition("/")[0],
                    name=name.partition("/")[2],
                    containers=[
                        pb.ContainerResources(name=one, devices=messages(has))
                        for one, has in containers.items()
                    ],
                )
                for name, containers in self.kubelet.pods
            ]
        )
        await stream.send_message(self.pods_answer or answer)

    async def devices(
        self, stream: Stream[pb.AllocatableResourcesRequest, pb.AllocatableResourcesResponse]
    ) -> None:
        await self._accept(stream, "GetAllocatableResources")
        own = pb.AllocatableResourcesResponse(devices=messages(self.kubelet.devices))
        await stream.send_message(self.devices_answer or own)

    async def _accept(self, stream: Stream[Any, Any], name: str) -> None:
        await stream.recv_message()
        if await self.kubelet.asked_by(name):
            raise GRPCError(Status.RESOURCE_EXHAUSTED, LIMITED)

    def __mapping__(self) -> dict[str, Handler]:
        unary, path = Cardinality.UNARY_UNARY, "/v1.PodResourcesLister"
        pods = (pb.ListPodResourcesRequest, pb.ListPodResourcesResponse)
        devices = (pb.AllocatableResourcesRequest, pb.AllocatableResourcesResponse)
        return {
            f"{path}/List": Handler(self.list_, unary, *pods),
            f"{path}/GetAllocatableResources": Handler(self.devices, unary, *devices),
        }


@asynccontextmanager
async def serve(kubelet: FakeKubelet, socket: Path) -> AsyncIterator[Served]:
    """Serve it on a socket."""
    served = Served(kubelet)
    server = Server([served])
    await server.start(path=str(socket))
    try:
        yield served
    finally:
        kubelet.may_answer.set()
        server.close()
        await server.wait_closed()
