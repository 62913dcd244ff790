"""What the runtime says and is answered over NRI, and who answers, without the protocol.

Does no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from numapin_api.cpuset import CpuSet, MemSet


class NriError(Exception):
    """The runtime does not use the plug-in; `str` says why."""


@dataclass(frozen=True, slots=True)
class NriContainer:
    """A container that is made or started, as the runtime describes it.

    Attributes:
        id: its id.
        name: its name in the pod.
        pod_uid: the UID of its pod; `namespace`, `pod`: its name.
        labels: the labels of its pod.
        cgroup_parent: the cgroup of its pod, as the kubelet names it to the runtime.
        cpu_shares: the weight of its CPU request; 0 if it is not set.
        quota_us: its CFS limit in a period of `period_us`; 0 if it has none.
        cpus: what the kubelet, or a plug-in that was asked before, has set; `mems` likewise.
    """

    id: str
    name: str
    pod_uid: str
    namespace: str = ""
    pod: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    cgroup_parent: str = ""
    cpu_shares: int = 0
    quota_us: int = 0
    period_us: int = 0
    cpus: str = ""
    mems: str = ""


@dataclass(frozen=True, slots=True)
class Sets:
    """What a container is to be made with; an empty set means what it would have anyway."""

    cpus: CpuSet = CpuSet()
    mems: MemSet = MemSet()


@dataclass(frozen=True, slots=True)
class RuntimeTimeouts:
    """What the runtime says of itself when it configures the plug-in.

    `request_seconds` is how long it waits for an answer before it drops the plug-in; 0 if unknown.
    """

    runtime: str
    version: str
    request_seconds: float


class Plugin(Protocol):
    """What answers the runtime. No call may fail: an error keeps the container from starting."""

    def registered(self, about: RuntimeTimeouts) -> None:
        """The runtime calls from now on."""
        ...

    async def create(self, container: NriContainer) -> Sets | None:
        """What a new container must be made with; None to leave it as it is."""
        ...

    async def start(self, container: NriContainer) -> None:
        """The container has its cgroup, and its first process runs once this returns."""
        ...
