"""What follows from a list of containers; the models and the plain values share it."""

from collections.abc import Iterable
from typing import Protocol

from numapin_api.cpuset import CpuSet


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
