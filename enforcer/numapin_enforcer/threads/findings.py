"""Threads that do not keep to their cgroup, or inherited a CPU affinity. Does no I/O."""

from dataclasses import dataclass

from numapin_api.cpuset import CpuSet


@dataclass(frozen=True, slots=True)
class WideThreads:
    """Threads of one cgroup that may use CPUs which the cgroup has not.

    Attributes:
        path: the cgroup.
        cpus: these CPUs, of all the threads.
        name: the name of one of them, escaped; any thread may have any name.
        ids: the threads.
    """

    path: str
    cpus: CpuSet
    name: str
    ids: tuple[int, ...]


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
