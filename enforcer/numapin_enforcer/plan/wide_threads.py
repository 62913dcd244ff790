"""Threads that do not keep to their cgroup. Does no I/O."""

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
