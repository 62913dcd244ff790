"""What the enforcer needs of a container runtime: the protocol, its values, its errors."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet, MemSet


class CriError(Exception):
    """The container runtime did not do what it was asked; `reason` goes into a condition."""

    reason: ClassVar[str] = Reason.RUNTIME_REFUSED


class CriUnavailableError(CriError):
    """The CRI socket does not answer, or not in time."""

    reason = Reason.RUNTIME_UNAVAILABLE

    def __init__(self, socket: Path, problem: str, *, is_outdated: bool = False) -> None:
        """Args: `is_outdated` if the socket's folder was deleted: a mount shows no new one."""
        remedy = "start it, or name its socket with --cri-socket"
        if is_outdated:
            remedy = (
                f"{socket.parent} was deleted, and only a restart of this program shows a new one"
            )
        super().__init__(f"the container runtime does not answer on {socket}: {problem}; {remedy}")
        self.socket, self.problem, self.is_outdated = socket, problem, is_outdated


class CriUnsupportedError(CriError):
    """The runtime is too old for a call."""

    reason = Reason.RUNTIME_UNSUPPORTED


class CriRefusedError(CriError):
    """The runtime answered a call with an error; it may have done a part of it."""

    reason = Reason.RUNTIME_REFUSED


class CriNotFoundError(CriRefusedError):
    """The runtime has no such container (any more)."""


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """The program that answers on the CRI socket, e.g. `containerd` `v2.1.9`."""

    name: str
    version: str


class ContainerState(StrEnum):
    """The phase of a container's life."""

    CREATED = "Created"
    RUNNING = "Running"
    EXITED = "Exited"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class RuntimeContainer:
    """One container that the runtime lists.

    containerd lists it before its cgroup appears, CRI-O after runc has created it. `pod_uid` is
    empty for a container that the kubelet did not create; `pod` is its namespace and name.
    """

    id: str
    name: str
    state: ContainerState
    pod_uid: str = ""
    pod: str = ""


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """What the runtime is sent for a container. An empty set and quota 0 mean "no change".

    `quota_us` is a CFS limit in the container's own period.
    """

    cpus: CpuSet
    mems: MemSet = MemSet()
    quota_us: int = 0


class ContainerRuntime(Protocol):
    """A container runtime, as the enforcer uses it."""

    async def version(self) -> RuntimeVersion:
        """The program that answers."""
        ...

    async def containers(self, container_id: str = "") -> tuple[RuntimeContainer, ...]:
        """All containers, started or not; only one of them if `container_id` is given."""
        ...

    async def sandboxes(self, sandbox_id: str = "") -> frozenset[str]:
        """Ids of the pods' sandboxes; only `sandbox_id`, if it is one, when that is given."""
        ...

    async def pods(self, uid: str = "") -> Mapping[str, str]:
        """Namespace and name of each pod with a sandbox, by UID; only of `uid` if it is given."""
        ...

    async def update_resources(self, container_id: str, resources: ContainerResources) -> None:
        """Set a container's resources; the runtime writes them again at each later update."""
        ...

    def events(self) -> AsyncGenerator[tuple[RuntimeContainer, ...]]:
        """For each event from now on, the containers of its pod; ends with the connection."""
        ...
