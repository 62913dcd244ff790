"""Threads that have the CPU affinity of their container runtime. Does no I/O."""

from dataclasses import dataclass

from numapin_api.cpuset import CpuSet


@dataclass(frozen=True, slots=True)
class InheritedMask:
    """The affinity that the processes of one cgroup have inherited from the container runtime.

    Attributes:
        path: the cgroup.
        cpus: the affinity; it may name CPUs that the cgroup has not, and none that it has.
        runtime: the name of the process that started them, escaped.
    """

    path: str
    cpus: CpuSet
    runtime: str

    def usable(self, own: CpuSet) -> CpuSet:
        """Which CPUs of its cgroup such a thread may use: all if the affinity names none of them.

        Source: Linux 6.2, kernel/sched/core.c, `__set_cpus_allowed_ptr`.
        """
        return self.cpus & own or own
