"""The container runtime behind its CRI socket. No other module uses gRPC."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from google.protobuf.message import DecodeError
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.generated.cri_v1_grpc import RuntimeServiceStub
from numapin_enforcer.runtime.interface import (
    ContainerResources,
    ContainerState,
    CriNotFoundError,
    CriRefusedError,
    CriUnavailableError,
    CriUnsupportedError,
    RuntimeContainer,
    RuntimeVersion,
)

CALL_TIMEOUT_SECONDS: Final = 5.0
"""For calls that read; containerd answers in milliseconds."""

UPDATE_TIMEOUT_SECONDS: Final = 15.0
"""For updates: the runtime runs runc, and a change of mems moves pages."""

SOCKETS: Final = (Path("/run/containerd/containerd.sock"), Path("/run/crio/crio.sock"))
"""The runtimes' default sockets."""

DAMAGED: Final = (AssertionError, DecodeError, LookupError, NotImplementedError, ValueError)
"""What grpclib and protobuf raise for an answer that cannot be read: one without a message, with a
short one, without `:status`, compressed, or not of its type."""

_POD_UID: Final = "io.kubernetes.pod.uid"
_NAMESPACE: Final = "io.kubernetes.pod.namespace"
_POD: Final = "io.kubernetes.pod.name"
"""The kubelet's label of each container. Source: kubelet pkg/types/labels.go."""

_STATES: Final = {
    pb.CONTAINER_CREATED: ContainerState.CREATED,
    pb.CONTAINER_RUNNING: ContainerState.RUNNING,
    pb.CONTAINER_EXITED: ContainerState.EXITED,
}


class CriClient:
    """A container runtime behind its CRI v1 socket. Every call has a timeout.

    Raises:
        CriUnavailableError: the socket is not served, the connection broke, or the answer is late
            or cannot be read.
        CriUnsupportedError: the runtime does not know the call.
        CriRefusedError: the runtime answered with an error.
    """

    def __init__(self, socket: Path, call_timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._socket = socket
        self._timeout_seconds = call_timeout_seconds
        self._channel = Channel(path=str(socket.absolute()))
        self._stub = RuntimeServiceStub(self._channel)
        self._listing = asyncio.Lock()
        """Held during a list of all: an answer may have 16 MiB, and takes 35 MiB to decode."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    async def version(self) -> RuntimeVersion:
        """The program that answers on the socket."""
        async with self._bounded(self._timeout_seconds):
            answer = await self._stub.Version(pb.VersionRequest(version="v1"))
        return RuntimeVersion(answer.runtime_name, answer.runtime_version)

    async def containers(self, container_id: str = "") -> tuple[RuntimeContainer, ...]:
        """All containers, started or not; only one of them if `container_id` is given."""
        asked = pb.ListContainersRequest(filter=pb.ContainerFilter(id=container_id))
        async with self._one_list(container_id), self._bounded(self._timeout_seconds):
            answer = await self._stub.ListContainers(asked)
            return tuple(_container(one) for one in answer.containers)

    async def sandboxes(self, sandbox_id: str = "") -> frozenset[str]:
        """All sandboxes; only the one with `sandbox_id` when that is given."""
        asked = pb.ListPodSandboxRequest(filter=pb.PodSandboxFilter(id=sandbox_id))
        async with self._one_list(sandbox_id), self._bounded(self._timeout_seconds):
            answer = await self._stub.ListPodSandbox(asked)
            return frozenset(one.id for one in answer.items)

    async def pods(self, uid: str = "") -> dict[str, str]:
        """Namespace and name of each pod with a sandbox, by UID; only of that pod if it is given.

        A sandbox that has ended is listed too, until it is removed.
        """
        labels = {_POD_UID: uid} if uid else {}
        asked = pb.ListPodSandboxRequest(filter=pb.PodSandboxFilter(label_selector=labels))
        async with self._one_list(uid), self._bounded(self._timeout_seconds):
            answer = await self._stub.ListPodSandbox(asked)
            found = (one.metadata for one in answer.items)
            return {one.uid: f"{one.namespace}/{one.name}" for one in found}

    async def update_resources(self, container_id: str, resources: ContainerResources) -> None:
        """Set a container's resources; the runtime writes them again at each later update.

        Success does not mean that the kernel has this cpuset, and an error does not mean that
        nothing changed: read it back.
        """
        linux = pb.LinuxContainerResources(
            cpuset_cpus=str(resources.cpus),
            cpuset_mems=str(resources.mems),
            cpu_quota=resources.quota_us,
        )
        request = pb.UpdateContainerResourcesRequest(container_id=container_id, linux=linux)
        async with self._bounded(max(self._timeout_seconds, UPDATE_TIMEOUT_SECONDS)):
            await self._stub.UpdateContainerResources(request)

    async def events(self) -> AsyncGenerator[tuple[RuntimeContainer, ...]]:
        """For each event from now on, the containers of its pod; ends with the stream.

        The wait for the next event has no timeout; a runtime that ends closes the connection.
        """
        with self._translated():
            async with self._stub.GetContainerEvents.open() as stream:
                await stream.send_message(pb.GetEventsRequest(), end=True)
                async for event in stream:
                    yield tuple(_container(one) for one in event.containers_statuses)

    @asynccontextmanager
    async def _one_list(self, id_: str) -> AsyncIterator[None]:
        """Wait until no other list of all is asked for; one of a single id waits for none."""
        if id_:
            yield
            return
        async with self._listing:
            yield

    @asynccontextmanager
    async def _bounded(self, timeout_seconds: float) -> AsyncIterator[None]:
        with self._translated():
            try:
                async with asyncio.timeout(timeout_seconds):
                    yield
            except TimeoutError as error:
                problem = f"no answer in {timeout_seconds:g} s"
                raise self._unavailable(problem) from error

    def _unavailable(self, problem: str) -> CriUnavailableError:
        """The error for a runtime that does not answer.

        A reinstalled runtime, or a unit with RuntimeDirectory=, makes its folder again. A container
        that has mounted the folder still sees the deleted one, which has no links.
        """
        try:
            is_outdated = self._socket.parent.stat().st_nlink == 0
        except OSError:
            is_outdated = False
        return CriUnavailableError(self._socket, problem, is_outdated=is_outdated)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except GRPCError as error:
            if error.status is Status.UNIMPLEMENTED:
                raise CriUnsupportedError(error.message or "call not implemented") from error
            if error.status is Status.UNAVAILABLE:
                raise self._unavailable(error.message or "unavailable") from error
            if error.status is Status.NOT_FOUND:
                raise CriNotFoundError(error.message) from error
            raise CriRefusedError(f"{error.status.name}: {error.message}") from error
        except (OSError, StreamTerminatedError, ProtocolError) as error:
            raise self._unavailable(str(error) or type(error).__name__) from error
        except DAMAGED as error:
            problem = f"its answer cannot be read ({type(error).__name__}: {error})"
            raise self._unavailable(problem) from error


def _container(one: pb.Container | pb.ContainerStatus) -> RuntimeContainer:
    state = _STATES.get(one.state, ContainerState.UNKNOWN)
    labels = one.labels
    pod = "/".join(filter(None, (labels.get(_NAMESPACE), labels.get(_POD))))
    return RuntimeContainer(one.id, one.metadata.name, state, labels.get(_POD_UID, ""), pod)


def find_socket(candidates: tuple[Path, ...] = SOCKETS) -> Path:
    """The first CRI socket that exists; if none does, the first that a runtime may still create."""
    return next((path for path in candidates if path.is_socket()), candidates[0])
