"""Serves the podresources API: the kubelet's answers with what containers have of numapin."""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from grpclib.config import Configuration
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from numapin_daemon.flowcontrol.rate_limit import TokenBucket
from numapin_enforcer.lister.connections import Connections
from numapin_enforcer.lister.in_force import InForce
from numapin_enforcer.lister.kubelet import Kubelet
from numapin_enforcer.lister.merging import merge_allocatable, merge_pods
from numapin_enforcer.podresources.client import receive
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from numapin_enforcer.runtime.generated.podresources_v1_grpc import PodResourcesListerBase

MOST_CALLS: Final = 4
"""Answers that are being made or sent: each may have 2 MiB."""

CALL_SECONDS: Final = 5.0
"""How long a call may take, until its answer is sent."""

CALLS_PER_SECOND: Final = 10.0
BURST_CALLS: Final = 10.0
"""The kubelet answers 100 in a second, of all its clients: most of them are left to the others.
Source: kubelet pkg/kubelet/apis/podresources/constants.go."""

MOST_REQUEST_BYTES: Final = 1024
"""Of a request: it names a namespace (63 characters) and a pod (253)."""

_WINDOW: Final = Configuration(
    http2_connection_window_size=(1 << 16) - 1, http2_stream_window_size=(1 << 16) - 1
)
"""What a client may send before it is read: the least that HTTP/2 allows."""


class Lister(PodResourcesListerBase):
    """The three calls, each of which asks the kubelet first.

    Without the kubelet's answer there is none: a part of it would say that devices are free which
    are not. The kubelet's own errors are passed on.
    """

    def __init__(self, kubelet: Kubelet, ours: Callable[[], InForce]) -> None:
        """Args: `ours` returns what is in force now, or raises GRPCError if that is not known."""
        self._kubelet, self._ours = kubelet, ours
        self._calls, self._rate = 0, TokenBucket(BURST_CALLS, CALLS_PER_SECOND)

    async def List(  # noqa: N802 - the name of the call
        self, stream: Stream[pb.ListPodResourcesRequest, pb.ListPodResourcesResponse]
    ) -> None:
        """All pods of the node."""

        async def answered() -> Message:
            answer = await self._kubelet.pods()
            merge_pods(answer.pod_resources, self._ours())
            return answer

        await self._answer(stream, answered)

    async def Get(  # noqa: N802 - the name of the call
        self, stream: Stream[pb.GetPodResourcesRequest, pb.GetPodResourcesResponse]
    ) -> None:
        """One pod; the kubelet's error if it has none of this name."""

        async def answered() -> Message:
            answer = await self._kubelet.pod(await _request(stream))
            merge_pods([answer.pod_resources], self._ours())
            return answer

        await self._answer(stream, answered)

    async def GetAllocatableResources(  # noqa: N802 - the name of the call
        self, stream: Stream[pb.AllocatableResourcesRequest, pb.AllocatableResourcesResponse]
    ) -> None:
        """What the node has for containers, used or not."""

        async def answered() -> Message:
            answer = await self._kubelet.allocatable()
            merge_allocatable(answer, self._ours())
            return answer

        await self._answer(stream, answered)

    async def _answer(
        self, stream: Stream[Any, Any], answered: Callable[[], Awaitable[Message]]
    ) -> None:
        if self._calls >= MOST_CALLS or not self._rate.take(1, time.monotonic()):
            raise GRPCError(Status.RESOURCE_EXHAUSTED, "too many calls at once: call less often")
        self._calls += 1
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await stream.send_message(await answered())
        except TimeoutError as error:
            problem = f"the call took longer than {CALL_SECONDS:g} s"
            raise GRPCError(Status.DEADLINE_EXCEEDED, problem) from error
        finally:
            self._calls -= 1


async def _request(stream: Stream[Any, Any]) -> pb.GetPodResourcesRequest:
    try:
        received = await receive(stream, MOST_REQUEST_BYTES)
        return pb.GetPodResourcesRequest.FromString(received or b"")
    except (AssertionError, DecodeError, ValueError) as error:
        raise GRPCError(Status.INVALID_ARGUMENT, f"the request cannot be read: {error}") from error


async def serve(listener: socket.socket, lister: Lister, end: "Future[None]") -> None:
    """Serve until `end` is set, in the running loop."""
    # It logs a traceback for every client that leaves, or sends what it must not.
    logging.getLogger("grpclib.server").setLevel(logging.CRITICAL)
    server = Server([lister], config=_WINDOW)
    connections = Connections(listener, server._protocol_factory)  # noqa: SLF001 - see Connections
    try:
        await asyncio.wrap_future(end)
    finally:
        connections.close()
