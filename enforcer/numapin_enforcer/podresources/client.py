"""The kubelet behind its podresources socket."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from grpclib import client, server
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from numapin_enforcer.podresources.devices import Devices, Entry, Places, grouped, rows_of
from numapin_enforcer.podresources.interface import PodResourcesError
from numapin_enforcer.podresources.pod_rows import PodAnswer
from numapin_enforcer.runtime.cri_client import DAMAGED
from numapin_enforcer.runtime.generated import podresources_v1_pb2 as pb
from numapin_enforcer.runtime.generated.podresources_v1_grpc import PodResourcesListerStub

CALL_TIMEOUT_SECONDS: Final = 2.0
"""The kubelet answers in milliseconds, from memory."""

MOST_BYTES: Final = 2 << 20
"""Of an answer; a device takes some 50."""

MOST_DEVICES: Final = 1 << 14
"""Of an answer; so many take 0.1 s to read, and 14 MiB of memory."""

_POD: Final = re.compile(r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}", re.ASCII)
"""Source: Kubernetes, a namespace is a DNS label, the name of a pod a DNS subdomain."""

_PREFIX_BYTES: Final = 5
"""Source: gRPC over HTTP/2, "Length-Prefixed-Message"."""


class PodResourcesClient:
    """One connection to the kubelet's podresources API v1, for one or two calls.

    Raises:
        PodResourcesError: there is no answer in time, a refusal, or one that cannot be used.
    """

    def __init__(self, socket: Path, timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._socket, self._timeout_seconds = socket, timeout_seconds

    async def __aenter__(self) -> Self:
        self._channel = Channel(path=str(self._socket.absolute()))
        self.stub = PodResourcesListerStub(self._channel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    async def devices(self, places: Places) -> tuple[Devices, ...]:
        """The healthy devices of the node, used or not."""
        method, request = self.stub.GetAllocatableResources, pb.AllocatableResourcesRequest()
        answer = await self.call(method, request)
        with self._translated():
            return await asyncio.to_thread(_read_devices, answer, places)

    async def pods(self, places: Places) -> PodAnswer:
        """The devices of the pods that the kubelet runs."""
        answer = await self.call(self.stub.List, pb.ListPodResourcesRequest())
        with self._translated():
            return await asyncio.to_thread(_read_pods, answer, places)

    async def call(self, method: UnaryUnaryMethod[Any, Any], request: object) -> bytes:
        """The kubelet's answer to one call, a message of at most `MOST_BYTES`."""
        with self._translated():
            async with asyncio.timeout(self._timeout_seconds), method.open() as stream:
                await stream.send_message(request, end=True)
                await stream.recv_initial_metadata()
                received = await receive(stream, MOST_BYTES)
            if received is None:
                raise ValueError("it is empty")
            return received

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            problem = f"no answer in {self._timeout_seconds:g} s"
            raise PodResourcesError(self._socket, problem) from error
        except GRPCError as error:
            problem = f"{error.status.name}: {error.message}"
            raise PodResourcesError(self._socket, problem) from error
        except (OSError, StreamTerminatedError, ProtocolError) as error:
            raise PodResourcesError(self._socket, str(error) or type(error).__name__) from error
        except DAMAGED as error:
            problem = f"its answer cannot be used ({type(error).__name__}: {error})"
            raise PodResourcesError(self._socket, problem) from error


async def receive(
    stream: client.Stream[Any, Any] | server.Stream[Any, Any], most_bytes: int
) -> bytes | None:
    """One message as bytes, or None; grpclib itself takes a message of any length.

    Raises:
        ValueError: it is compressed or too long.
        AssertionError: it ends too early.
    """
    received = stream._stream  # noqa: SLF001 (see above)
    prefix = await received.recv_data(_PREFIX_BYTES)
    if not prefix:
        return None
    length = int.from_bytes(prefix[1:], "big")
    if prefix[0]:
        raise ValueError("it is compressed")
    if length > most_bytes:
        raise ValueError(f"it has {length} bytes, more than {most_bytes}")
    return await received.recv_data(length)


def _read_devices(answer: bytes, places: Places) -> tuple[Devices, ...]:
    message = pb.AllocatableResourcesResponse.FromString(answer)
    _check_count(message.devices)
    return grouped(_entries(message.devices), places)


def _read_pods(answer: bytes, places: Places) -> PodAnswer:
    message = pb.ListPodResourcesResponse.FromString(answer)
    pods = message.pod_resources
    _check_count(each for pod in pods for one in pod.containers for each in one.devices)
    times = Counter(f"{pod.namespace}/{pod.name}" for pod in pods)
    once = frozenset(name for name, count in times.items() if count == 1)
    rows = {}
    for pod in pods:
        containers = ((one.name, _entries(one.devices)) for one in pod.containers)
        name = f"{pod.namespace}/{pod.name}"
        if name in once and _POD.fullmatch(name) and (found := rows_of(containers, places)):
            rows[name] = found
    return PodAnswer(once, rows)


def _entries(devices: Iterable[pb.ContainerDevices]) -> Iterator[Entry]:
    for one in devices:
        yield one.resource_name, one.device_ids, (node.ID for node in one.topology.nodes)


def _check_count(devices: Iterable[pb.ContainerDevices]) -> None:
    count = 0
    for one in devices:
        count += max(1, len(one.device_ids))
        if count > MOST_DEVICES:
            raise ValueError(f"it has more than {MOST_DEVICES} devices")
