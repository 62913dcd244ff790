"""The CPUs of one node that no container has to itself."""

from numapin_operator.placement.masks import CpuMask


class CpuPool:
    """The shared pool while pods are placed.

    Args:
        shared: the CPUs that nothing holds exclusively.
        reserved: CPUs that are never given out.
        reserved_cores: CPUs of cores that have a reserved CPU.
    """

    __slots__ = ("_reserved", "_reserved_cores", "shared")

    def __init__(self, shared: CpuMask, reserved: CpuMask, reserved_cores: CpuMask) -> None:
        self.shared, self._reserved, self._reserved_cores = shared, reserved, reserved_cores

    @property
    def free(self) -> CpuMask:
        """CPUs that may be given out: shared and not reserved."""
        return self.shared & ~self._reserved

    @property
    def free_whole_cores(self) -> CpuMask:
        """Free CPUs of cores without a reserved CPU."""
        return self.shared & ~self._reserved_cores

    def claim(self, cpus: CpuMask) -> None:
        """Take CPUs out of the shared pool."""
        self.shared &= ~cpus

    def release(self, cpus: CpuMask) -> None:
        """Return CPUs to the shared pool."""
        self.shared |= cpus
