"""The part of a spec that cgroups are planned from.

The enforcer plans from the API's models, the standby from plain values: models cost it memory.
Does no I/O.
"""

from collections.abc import Sequence
from typing import Protocol

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


class SharedPool(Protocol):
    """The pools, as far as cgroups get them."""

    @property
    def shared(self) -> CpuSet:
        """CPUs of all containers without exclusive CPUs."""
        ...


class AssignedSpec(Protocol):
    """A spec; the fields are those of `numapin_api.nodeassignment.NodeAssignmentSpec`."""

    @property
    def pools(self) -> SharedPool | None:
        """Unset while nothing is assigned."""
        ...

    @property
    def containers(self) -> Sequence[AssignedContainer]:
        """Containers with assigned CPUs or memory."""
        ...

    @property
    def exclusive_cpus(self) -> CpuSet:
        """The CPUs of all exclusive containers."""
        ...
