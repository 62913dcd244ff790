"""Threads that do not keep to their cgroup, as the status names them. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import parent
from numapin_enforcer.plan.wide_threads import WideThreads

REMEDY: Final = (
    "give its pod the seccomp profile RuntimeDefault, or set kernel.io_uring_disabled=2 on the node"
)
"""Source: containerd 2, contrib/seccomp/seccomp_default.go, which does not list `io_uring_setup`;
Linux 6.6, Documentation/admin-guide/sysctl/kernel.rst, `io_uring_disabled`."""


@dataclass(frozen=True, slots=True)
class Intruder:
    """Threads that may use CPUs which their cgroup has not, and do so again and again.

    Attributes:
        path: their cgroup.
        cpus: these CPUs.
        container: what the cgroup is: a container or a cgroup, for people.
        thread: the name of one of the threads, which may be any.
    """

    path: str
    cpus: CpuSet
    container: str
    thread: str

    @classmethod
    def of(cls, one: WideThreads, naming: CgroupNaming, names: Mapping[str, str]) -> Self:
        """Wide threads, with the name of their container if `names` has its id."""
        path = one.path
        while naming.parse(path).kind is Kind.NESTED:
            path = parent(path)
        name = names.get(naming.parse(path).container_id)
        return cls(one.path, one.cpus, f"container {name}" if name else f"cgroup {path}", one.name)

    def why(self, cpus: CpuSet) -> str:
        """What a container with these of the CPUs lacks, and what to do."""
        return (
            f"shares CPU {cpus} with threads of {self.container}, such as {self.thread!r}, which "
            f"io_uring makes again and again with CPUs that the container has not: {REMEDY}"
        )
