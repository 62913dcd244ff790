"""The device plug-in API (v1beta1) for one resource, and its registration with a kubelet."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from grpclib.client import Channel
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from numapin_lab.devices.devices import Device, load
from numapin_lab.devices.generated import deviceplugin_v1beta1_pb2 as pb
from numapin_lab.devices.generated.deviceplugin_v1beta1_grpc import (
    DevicePluginBase,
    RegistrationStub,
)

FOLDER: Final = Path("/var/lib/kubelet/device-plugins")
"""A constant of the kubelet: `DevicePluginPath`."""

API_VERSION: Final = "v1beta1"
LOOK_SECONDS: Final = 0.05
"""How often the plug-in looks at its devices, and whether the kubelet has removed its socket."""

REGISTER_SECONDS: Final = 5.0
VARIABLE: Final = "NUMAPIN_LAB_DEVICES"
"""The variable of a container that holds the ids of its devices."""


class DevicePlugin(DevicePluginBase):
    """Offers the devices that `read` returns, and prefers the first ones by id."""

    def __init__(self, resource: str, read: Callable[[], tuple[Device, ...]]) -> None:
        self.resource, self._read = resource, read

    async def serve(self, folder: Path = FOLDER) -> None:
        """Register, and again whenever the kubelet removes the socket: it does so as it starts."""
        socket = folder / f"{self.resource.replace('/', '-')}.sock"
        while True:
            socket.unlink(missing_ok=True)
            server = Server([self])
            await server.start(path=str(socket))
            is_registered = False
            while socket.exists():
                is_registered = is_registered or await self._register(folder, socket.name)
                await asyncio.sleep(LOOK_SECONDS)
            server.close()

    async def _register(self, folder: Path, endpoint: str) -> bool:
        """Whether the kubelet took it; it does not while it starts."""
        channel = Channel(path=str(folder / "kubelet.sock"))
        options = pb.DevicePluginOptions(get_preferred_allocation_available=True)
        request = pb.RegisterRequest(
            version=API_VERSION, endpoint=endpoint, resource_name=self.resource, options=options
        )
        try:
            await RegistrationStub(channel).Register(request, timeout=REGISTER_SECONDS)
        except (GRPCError, OSError) as error:
            print(f"the kubelet does not register {self.resource}: {error}", flush=True)
            return False
        finally:
            channel.close()
        print(f"registered {self.resource}", flush=True)
        return True

    async def GetDevicePluginOptions(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.Empty, pb.DevicePluginOptions]
    ) -> None:
        """Say that allocations are preferred."""
        await stream.recv_message()
        await stream.send_message(pb.DevicePluginOptions(get_preferred_allocation_available=True))

    async def ListAndWatch(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.Empty, pb.ListAndWatchResponse]
    ) -> None:
        """Send the devices at once, and after each change."""
        await stream.recv_message()
        sent: tuple[Device, ...] | None = None
        while True:
            if (found := self._read()) != sent:
                sent = found
                await stream.send_message(pb.ListAndWatchResponse(devices=map(_message, found)))
            await asyncio.sleep(LOOK_SECONDS)

    async def GetPreferredAllocation(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.PreferredAllocationRequest, pb.PreferredAllocationResponse]
    ) -> None:
        """Prefer those that must be, then the first by id."""
        request = await stream.recv_message()
        assert request is not None
        answer = pb.PreferredAllocationResponse()
        for one in request.container_requests:
            needed = list(one.must_include_deviceIDs)
            others = sorted(set(one.available_deviceIDs) - set(needed))
            chosen = (needed + others)[: one.allocation_size]
            answer.container_responses.add(deviceIDs=chosen)
        await stream.send_message(answer)

    async def Allocate(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.AllocateRequest, pb.AllocateResponse]
    ) -> None:
        """Tell the container its devices by a variable."""
        request = await stream.recv_message()
        assert request is not None
        answer = pb.AllocateResponse()
        for one in request.container_requests:
            answer.container_responses.add(envs={VARIABLE: ",".join(sorted(one.devices_ids))})
        await stream.send_message(answer)

    async def PreStartContainer(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.PreStartContainerRequest, pb.PreStartContainerResponse]
    ) -> None:
        """Do nothing: there is nothing to reset."""
        await stream.recv_message()
        await stream.send_message(pb.PreStartContainerResponse())


def _message(device: Device) -> pb.Device:
    nodes = [pb.NUMANode(ID=node) for node in device.numa_nodes]
    return pb.Device(
        ID=device.id,
        health="Healthy" if device.healthy else "Unhealthy",
        topology=pb.TopologyInfo(nodes=nodes) if nodes else None,
    )


def run(resource: str, file: Path, folder: Path = FOLDER) -> None:
    """Offer the devices of a file for ever; one that is being written changes nothing."""
    known: tuple[Device, ...] = load(file.read_text())

    def read() -> tuple[Device, ...]:
        nonlocal known
        with suppress(OSError, ValueError):
            known = load(file.read_text())
        return known

    asyncio.run(DevicePlugin(resource, read).serve(folder))
