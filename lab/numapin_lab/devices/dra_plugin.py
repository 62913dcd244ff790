"""The kubelet's side of a DRA driver: registration, and claims that are prepared at once.

The devices of the lab need nothing on the node, and no CDI device: a claim is prepared when it is
asked for. `slices` has what the driver publishes.
"""

import asyncio
from pathlib import Path
from typing import Final

from grpclib.server import Server, Stream

from numapin_lab.devices.generated import dra_v1_pb2 as pb
from numapin_lab.devices.generated import pluginregistration_v1_pb2 as registration
from numapin_lab.devices.generated.dra_v1_grpc import DRAPluginBase
from numapin_lab.devices.generated.pluginregistration_v1_grpc import RegistrationBase

REGISTRY: Final = "plugins_registry"
"""The folder below the kubelet's root in which it finds sockets of plug-ins."""

SERVICE: Final = "v1.DRAPlugin"
"""Source: k8s.io/kubelet v0.36, pkg/apis/dra/v1, `DRAPluginService`."""


class _Registration(RegistrationBase):
    """Registers the socket that the kubelet has found, for both services."""

    def __init__(self, driver: str) -> None:
        self._driver = driver

    async def GetInfo(  # noqa: N802 (gRPC)
        self, stream: Stream[registration.InfoRequest, registration.PluginInfo]
    ) -> None:
        """Say what it is."""
        await stream.recv_message()
        await stream.send_message(
            registration.PluginInfo(
                type="DRAPlugin", name=self._driver, supported_versions=[SERVICE]
            )
        )

    async def NotifyRegistrationStatus(  # noqa: N802 (gRPC)
        self,
        stream: Stream[registration.RegistrationStatus, registration.RegistrationStatusResponse],
    ) -> None:
        """Log what the kubelet says of the registration."""
        status = await stream.recv_message()
        print(f"registered {self._driver}: {status}", flush=True)
        await stream.send_message(registration.RegistrationStatusResponse())


class _Driver(DRAPluginBase):
    """Prepares each claim."""

    async def NodePrepareResources(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.NodePrepareResourcesRequest, pb.NodePrepareResourcesResponse]
    ) -> None:
        """Say that all are prepared."""
        request = await stream.recv_message()
        assert request is not None
        answer = pb.NodePrepareResourcesResponse()
        for claim in request.claims:
            print(f"prepared {claim.namespace}/{claim.name}", flush=True)
            answer.claims[claim.uid].SetInParent()
        await stream.send_message(answer)

    async def NodeUnprepareResources(  # noqa: N802 (gRPC)
        self, stream: Stream[pb.NodeUnprepareResourcesRequest, pb.NodeUnprepareResourcesResponse]
    ) -> None:
        """Say that none is any more."""
        request = await stream.recv_message()
        assert request is not None
        answer = pb.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            answer.claims[claim.uid].SetInParent()
        await stream.send_message(answer)


async def _serve(driver: str, registry: Path) -> None:
    socket = registry / f"{driver}.sock"
    socket.unlink(missing_ok=True)
    server = Server([_Registration(driver), _Driver()])
    await server.start(path=str(socket))
    await server.wait_closed()


def run(driver: str, registry: Path) -> None:
    """Serve for ever."""
    asyncio.run(_serve(driver, registry))
