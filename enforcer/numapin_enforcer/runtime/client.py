"""Edge: what the container runtime knows (its containers' names) and is told (their CPUs)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Protocol, Self

from grpclib.client import Channel
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from numapin_api.conditions import Reason
from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.runtime.generated import cri_v1_pb2 as pb
from numapin_enforcer.runtime.generated.cri_v1_grpc import RuntimeServiceStub

CALL_TIMEOUT_SECONDS: Final = 5.0
"""How long a question may take; containerd answers in milliseconds."""

UPDATE_TIMEOUT_SECONDS: Final = 15.0
"""How long telling the runtime may take; it runs runc, and a mems change moves pages."""

UNLIMITED_QUOTA: Final = -1
"""What lifts a CFS quota that was set before; 0 would mean "no change"."""

SOCKETS: Final = (Path("/run/containerd/containerd.sock"), Path("/run/crio/crio.sock"))
"""Where the runtimes listen when nobody changed it."""


class CriError(Exception):
    """The container runtime did not do what it was asked; `reason` goes into a condition."""

    reason: ClassVar[Reason] = Reason.RUNTIME_REFUSED


class CriUnavailableError(CriError):
    """Nobody answers behind the CRI socket, or not in time."""

    reason = Reason.RUNTIME_UNAVAILABLE

    def __init__(self, socket: Path, problem: str) -> None:
        super().__init__(
            f"the container runtime does not answer on {socket}: {problem}; "
            "start it, or name its socket with --cri-socket"
        )
        self.socket, self.problem = socket, problem


class CriUnsupportedError(CriError):
    """The runtime is too old for a call."""

    reason = Reason.RUNTIME_UNSUPPORTED


class CriRefusedError(CriError):
    """The runtime answered a call with an error; it may have done half of it."""

    reason = Reason.RUNTIME_REFUSED


class CriNotFoundError(CriRefusedError):
    """The runtime knows no such container (any more)."""


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """Who answers on the CRI socket, e.g. `containerd` `v2.1.9`."""

    name: str
    version: str


class ContainerState(StrEnum):
    """How far a container is."""

    CREATED = "Created"
    RUNNING = "Running"
    EXITED = "Exited"
    UNKNOWN = "Unknown"


_STATES: Final = {
    pb.CONTAINER_CREATED: ContainerState.CREATED,
    pb.CONTAINER_RUNNING: ContainerState.RUNNING,
    pb.CONTAINER_EXITED: ContainerState.EXITED,
}


@dataclass(frozen=True, slots=True)
class RuntimeContainer:
    """One container that the runtime knows.

    containerd lists it before its cgroup appears, CRI-O not until runc has created it.
    """

    id: str
    name: str
    state: ContainerState


class EventKind(StrEnum):
    """What happened to a container or a sandbox."""

    CREATED = "Created"
    STARTED = "Started"
    STOPPED = "Stopped"
    DELETED = "Deleted"


_KINDS: Final = {
    pb.CONTAINER_CREATED_EVENT: EventKind.CREATED,
    pb.CONTAINER_STARTED_EVENT: EventKind.STARTED,
    pb.CONTAINER_STOPPED_EVENT: EventKind.STOPPED,
    pb.CONTAINER_DELETED_EVENT: EventKind.DELETED,
}


@dataclass(frozen=True, slots=True)
class RuntimeEvent:
    """One event of the runtime, with the containers of the pod that it is about."""

    kind: EventKind
    container_id: str
    containers: tuple[RuntimeContainer, ...]


class ContainerRuntime(Protocol):
    """What the enforcer needs of a container runtime."""

    async def version(self) -> RuntimeVersion:
        """Who answers."""
        ...

    async def containers(self, container_id: str = "") -> tuple[RuntimeContainer, ...]:
        """The containers it knows; only the one with `container_id` when that is given."""
        ...

    async def sandboxes(self, sandbox_id: str = "") -> frozenset[str]:
        """Ids of the pods' sandboxes; only `sandbox_id`, if it is one, when that is given."""
        ...

    async def update_resources(self, container_id: str, record: "ContainerResources") -> None:
        """Make it remember a container's sets, so that its later updates repeat them."""
        ...

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """What happens to containers from now on, until the connection ends."""
        ...


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """What the runtime is told of a container; an empty set and no quota mean "no change" to it.

    `quota_us` is a CFS limit in the container's own period, or `UNLIMITED_QUOTA`.
    """

    cpus: CpuSet
    mems: MemSet = MemSet()
    quota_us: int = 0


class CriClient:
    """A container runtime behind its CRI v1 socket. Every call has a timeout.

    Raises:
        CriUnavailableError: nobody listens, the connection broke, or the answer is late.
        CriUnsupportedError: the runtime does not know the call.
        CriRefusedError: the runtime answered with an error.
    """

    def __init__(self, socket: Path, call_timeout_seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._socket = socket
        self._timeout_seconds = call_timeout_seconds
        self._channel = Channel(path=str(socket.absolute()))
        self._stub = RuntimeServiceStub(self._channel)

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
        """Who answers on the socket."""
        async with self._bounded(self._timeout_seconds):
            answer = await self._stub.Version(pb.VersionRequest(version="v1"))
        return RuntimeVersion(answer.runtime_name, answer.runtime_version)

    async def containers(self, container_id: str = "") -> tuple[RuntimeContainer, ...]:
        """All containers, started or not; only one of them when `container_id` is given."""
        asked = pb.ListContainersRequest(filter=pb.ContainerFilter(id=container_id))
        async with self._bounded(self._timeout_seconds):
            answer = await self._stub.ListContainers(asked)
        return tuple(_container(one) for one in answer.containers)

    async def sandboxes(self, sandbox_id: str = "") -> frozenset[str]:
        """All sandboxes; only the one with `sandbox_id` when that is given."""
        asked = pb.ListPodSandboxRequest(filter=pb.PodSandboxFilter(id=sandbox_id))
        async with self._bounded(self._timeout_seconds):
            answer = await self._stub.ListPodSandbox(asked)
        return frozenset(one.id for one in answer.items)

    async def update_resources(self, container_id: str, record: ContainerResources) -> None:
        """Tell the runtime a container's sets, which its later updates will write again.

        An answer without error does not mean that the kernel's cpuset is as told, and an error
        does not mean that nothing changed: read it back.
        """
        told = pb.LinuxContainerResources(
            cpuset_cpus=str(record.cpus),
            cpuset_mems=str(record.mems),
            cpu_quota=record.quota_us,
        )
        request = pb.UpdateContainerResourcesRequest(container_id=container_id, linux=told)
        async with self._bounded(max(self._timeout_seconds, UPDATE_TIMEOUT_SECONDS)):
            await self._stub.UpdateContainerResources(request)

    async def events(self) -> AsyncIterator[RuntimeEvent]:
        """Containers created, started, stopped and deleted from now on; ends with the stream.

        The wait for the next event has no limit; a runtime that goes away ends the connection.
        """
        with self._translated():
            async with self._stub.GetContainerEvents.open() as stream:
                await stream.send_message(pb.GetEventsRequest(), end=True)
                async for event in stream:
                    yield _event(event)

    @asynccontextmanager
    async def _bounded(self, timeout_seconds: float) -> AsyncIterator[None]:
        with self._translated():
            try:
                async with asyncio.timeout(timeout_seconds):
                    yield
            except TimeoutError as error:
                problem = f"no answer in {timeout_seconds:g} s"
                raise CriUnavailableError(self._socket, problem) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except GRPCError as error:
            if error.status is Status.UNIMPLEMENTED:
                raise CriUnsupportedError(error.message or "call not implemented") from error
            if error.status is Status.UNAVAILABLE:
                raise CriUnavailableError(self._socket, error.message or "unavailable") from error
            if error.status is Status.NOT_FOUND:
                raise CriNotFoundError(error.message) from error
            raise CriRefusedError(f"{error.status.name}: {error.message}") from error
        except (OSError, StreamTerminatedError, ProtocolError) as error:
            raise CriUnavailableError(self._socket, str(error) or type(error).__name__) from error


def _event(event: pb.ContainerEventResponse) -> RuntimeEvent:
    return RuntimeEvent(
        _KINDS[event.container_event_type],
        event.container_id,
        tuple(_container(one) for one in event.containers_statuses),
    )


def _container(one: pb.Container | pb.ContainerStatus) -> RuntimeContainer:
    state = _STATES.get(one.state, ContainerState.UNKNOWN)
    return RuntimeContainer(one.id, one.metadata.name, state)


def find_socket(candidates: tuple[Path, ...] = SOCKETS) -> Path:
    """The first CRI socket of this machine that is there.

    Raises:
        CriUnavailableError: none is.
    """
    for path in candidates:
        if path.is_socket():
            return path
    listed = " or ".join(str(path) for path in candidates)
    raise CriUnavailableError(candidates[0], f"no socket at {listed}")
