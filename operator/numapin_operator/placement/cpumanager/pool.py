"""The CPUs of one node that no container has to itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from numapin_operator.placement.masks import NO_CPUS, CpuMask


class CpuPool:
    """The shared pool while pods are placed, and CPUs that serve exclusive containers alone.

    Args:
        shared: the CPUs that nothing holds exclusively.
        reserved: CPUs that are never given out.
        reserved_cores: CPUs of cores that have a reserved CPU.
        exclusive_only: CPUs that are never shared; none of them is in `shared`.
    """

    __slots__ = ("_exclusive_free", "_reserved", "_reserved_cores", "exclusive_only", "shared")

    def __init__(
        self,
        shared: CpuMask,
        reserved: CpuMask,
        reserved_cores: CpuMask,
        exclusive_only: CpuMask = NO_CPUS,
    ) -> None:
        self.shared, self._reserved, self._reserved_cores = shared, reserved, reserved_cores
        self.exclusive_only = self._exclusive_free = exclusive_only

    @property
    def free(self) -> CpuMask:
        """CPUs that may be given out: in use by no exclusive container and not reserved."""
        return (self.shared | self._exclusive_free) & ~self._reserved

    @property
    def free_whole_cores(self) -> CpuMask:
        """Free CPUs of cores without a reserved CPU."""
        return (self.shared | self._exclusive_free) & ~self._reserved_cores

    def claim(self, cpus: CpuMask) -> None:
        """Take CPUs out of the pool."""
        self.shared &= ~cpus
        self._exclusive_free &= ~cpus

    def release(self, cpus: CpuMask) -> None:
        """Return CPUs to where they were taken from."""
        self.shared |= cpus & ~self.exclusive_only
        self._exclusive_free |= cpus & self.exclusive_only

    @contextmanager
    def only(self, cpus: CpuMask, in_whole_cores: CpuMask) -> Iterator[None]:
        """Give out none but these CPUs for a while; the others stay where they are.

        Args:
            cpus: what may be given out.
            in_whole_cores: those of them whose cores have no other CPU.
        """
        reserved, cores = self._reserved, self._reserved_cores
        self._reserved, self._reserved_cores = reserved | ~cpus, cores | ~in_whole_cores
        try:
            yield
        finally:
            self._reserved, self._reserved_cores = reserved, cores

    def copy(self) -> "CpuPool":
        """A copy that can be changed independently."""
        made = CpuPool(self.shared, self._reserved, self._reserved_cores, self.exclusive_only)
        made._exclusive_free = self._exclusive_free
        return made
