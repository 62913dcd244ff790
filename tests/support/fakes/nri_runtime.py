"""A runtime's NRI socket, as containerd serves it: registers one plug-in, and calls it."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from google.protobuf.message import Message

from numapin_enforcer.runtime.generated import nri_v1alpha1_pb2 as pb
from numapin_enforcer.runtime.nri.frames import PLUGIN, RUNTIME, Frame, FrameReader, Kind, encode
from numapin_enforcer.runtime.nri.messages import PLUGIN_SERVICE

PATIENCE_SECONDS = 20
UID = "00000000-1111-4111-8111-000000000001"


def new_container(
    name: str = "main",
    uid: str = UID,
    id_: str = "a" * 64,
    *,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
    cgroup_parent: str = "/kubepods/pod1",
    shares: int = 1024,
    quota_us: int = 100_000,
) -> pb.CreateContainerRequest:
    """The call for a container of a Guaranteed pod with one CPU."""
    cpu = pb.LinuxCPU(
        shares=pb.OptionalUInt64(value=shares),
        quota=pb.OptionalInt64(value=quota_us),
        period=pb.OptionalUInt64(value=100_000),
    )
    linux = pb.LinuxContainer(resources=pb.LinuxResources(cpu=cpu))
    parent = pb.LinuxPodSandbox(cgroup_parent=cgroup_parent)
    return pb.CreateContainerRequest(
        pod=pb.PodSandbox(
            name="pod", uid=uid, namespace=namespace, labels=labels or {}, linux=parent
        ),
        container=pb.Container(id=id_, name=name, linux=linux),
    )


@dataclass
class FakeNri:
    """Accepts one plug-in after the other.

    Attributes:
        socket: where it listens.
        refuses: what it answers to a registration; empty registers.
        registered: name and index of each plug-in.
        subscribed: the events of the last.
    """

    socket: Path
    refuses: str = ""
    registered: list[tuple[str, str]] = field(default_factory=list)
    subscribed: int = 0
    _stream: int = 1
    _answers: dict[int, asyncio.Future[pb.TtrpcResponse]] = field(default_factory=dict)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self.socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop()

    def drop(self) -> None:
        """Close the connection, as when a plug-in took too long."""
        self._ready.clear()
        if self._writer is not None:
            self._writer.close()

    async def until_ready(self) -> None:
        """Wait until a plug-in is synchronized."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._ready.wait()

    async def ask(
        self, method: str, message: Message, service: str = PLUGIN_SERVICE
    ) -> pb.TtrpcResponse:
        """Call the plug-in; its whole answer."""
        payload = message.SerializeToString()
        self._stream += 2
        self._answers[self._stream] = future = asyncio.get_running_loop().create_future()
        request = pb.TtrpcRequest(service=service, method=method, payload=payload)
        self.send(Frame(PLUGIN, self._stream, Kind.REQUEST, request.SerializeToString()))
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer: pb.TtrpcResponse = await future
        return answer

    async def create(self, request: pb.CreateContainerRequest) -> tuple[str, str]:
        """Ask about a new container; the CPUs and NUMA nodes of the answer."""
        answer = await self.ask("CreateContainer", request)
        assert not answer.status.code, answer.status.message
        cpu = pb.CreateContainerResponse.FromString(answer.payload).adjust.linux.resources.cpu
        return cpu.cpus, cpu.mems

    def send(self, frame: Frame) -> None:
        self.send_bytes(encode(frame))

    def send_bytes(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer, frames = writer, FrameReader()
        try:
            while data := await reader.read(1000):
                for frame in frames.feed(data):
                    await self._take(frame)
        except ConnectionError:
            pass
        writer.close()

    async def _take(self, frame: Frame) -> None:
        if frame.connection == PLUGIN:
            answer = pb.TtrpcResponse.FromString(frame.payload)
            self._answers.pop(frame.stream).set_result(answer)
            return
        request = pb.TtrpcRequest.FromString(frame.payload)
        named = pb.RegisterPluginRequest.FromString(request.payload)
        status = pb.TtrpcStatus(code=2 if self.refuses else 0, message=self.refuses)
        response = pb.TtrpcResponse(status=status).SerializeToString()
        self.send(Frame(RUNTIME, frame.stream, Kind.RESPONSE, response))
        if not self.refuses:
            self.registered.append((named.plugin_name, named.plugin_idx))
            self._setup = asyncio.ensure_future(self._set_up())

    async def _set_up(self) -> None:
        configure = pb.ConfigureRequest(
            runtime_name="fake", runtime_version="v1", request_timeout=2000
        )
        answer = await self.ask("Configure", configure)
        self.subscribed = pb.ConfigureResponse.FromString(answer.payload).events
        for more in (True, False):
            answer = await self.ask("Synchronize", pb.SynchronizeRequest(more=more))
            assert pb.SynchronizeResponse.FromString(answer.payload).more is more
        self._ready.set()
