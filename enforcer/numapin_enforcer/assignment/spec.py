"""The part of a spec that cgroups are planned from.

Plain values (`decode`) have them, and so do the API's models. Does no I/O.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from numapin_api.cpuset import CpuSet, MemSet


class AssignedContainer(Protocol):
    """One container; the fields are those of `numapin_api.nodeassignment.ContainerAssignment`."""

    @property
    def pod_uid(self) -> str:
        """The UID of its pod."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of its pod."""
        ...

    @property
    def pod(self) -> str:
        """The name of its pod."""
        ...

    @property
    def container(self) -> str:
        """Its name."""
        ...

    @property
    def cpus(self) -> CpuSet:
        """The CPUs that it may use; if empty, the shared pool."""
        ...

    @property
    def mems(self) -> MemSet:
        """The NUMA nodes that it may use memory of; if empty, any."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether no other container may use these CPUs."""
        ...

    @property
    def outdated(self) -> bool | None:
        """Whether the newest policy would not place it as it is."""
        ...

    @property
    def claimed(self) -> bool | None:
        """Whether the DRA driver dra.cpu has given it these CPUs."""
        ...


class AssignedPools(Protocol):
    """The pools; the fields are those of `numapin_api.nodeassignment.Pools`."""

    @property
    def reserved(self) -> CpuSet:
        """CPUs that are never assigned exclusively."""
        ...

    @property
    def shared(self) -> CpuSet:
        """CPUs of all containers without exclusive CPUs."""
        ...


class AssignedSpec(Protocol):
    """A spec; the fields are those of `numapin_api.nodeassignment.NodeAssignmentSpec`."""

    @property
    def mode(self) -> str:
        """Whether it is enforced (Static, Dynamic), or cgroups are reset as found (None)."""
        ...

    @property
    def cpu_quota(self) -> str:
        """Whether exclusive containers have no CFS quota (Unlimited), or theirs stays (Keep)."""
        ...

    @property
    def isolation(self) -> str:
        """How other containers are kept off exclusive CPUs."""
        ...

    @property
    def pools(self) -> AssignedPools | None:
        """Unset while nothing is assigned."""
        ...

    @property
    def containers(self) -> Sequence[AssignedContainer]:
        """Containers with assigned CPUs or memory."""
        ...

    @property
    def refused(self) -> Sequence[object]:
        """The containers and pods that were refused CPUs or memory, as far as they are listed."""
        ...

    @property
    def refused_omitted(self) -> int | None:
        """The number of refused pods that are not listed; None if all are."""
        ...

    @property
    def release_at(self) -> str | None:
        """When the operator gives everything back; None if that is not planned."""
        ...

    @property
    def exclusive_cpus(self) -> CpuSet:
        """The CPUs of all exclusive containers."""
        ...

    def to_wire(self) -> dict[str, Any]:
        """The spec as values for JSON."""
        ...
