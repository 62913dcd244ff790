"""What follows from the fields of a value; the models and the plain values share it."""

from collections.abc import Iterable, Sized
from typing import Protocol

from numapin_api.cpuset import CpuSet

ContainerKey = tuple[str, str]
"""The UID of a pod and the name of a container of it."""


class _NamesContainer(Protocol):
    @property
    def pod_uid(self) -> str: ...
    @property
    def container(self) -> str: ...


class OfContainer:
    """A value with the fields `pod_uid` and `container`."""

    __slots__ = ()

    @property
    def key(self: _NamesContainer) -> ContainerKey:
        """What tells the container from all others of the node."""
        return self.pod_uid, self.container


class _Container(Protocol):
    @property
    def cpus(self) -> CpuSet: ...
    @property
    def exclusive(self) -> bool: ...


class _Containers(Protocol):
    @property
    def containers(self) -> Iterable[_Container]: ...


class HasExclusiveCpus:
    """A value with the field `containers`."""

    __slots__ = ()

    @property
    def exclusive_cpus(self: _Containers) -> CpuSet:
        """The CPUs of all exclusive containers."""
        return CpuSet.union(one.cpus for one in self.containers if one.exclusive)


class _Refusals(Protocol):
    @property
    def refused(self) -> Sized: ...
    @property
    def refused_omitted(self) -> int | None: ...


class HasRefusals:
    """A value with the fields `refused` and `refused_omitted`."""

    __slots__ = ()

    @property
    def refused_count(self: _Refusals) -> int:
        """How many pods are refused, with those that there is no room for."""
        return len(self.refused) + (self.refused_omitted or 0)
