"""Threads that may use other CPUs than their cgroup has, as the status names them.

Does no I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology
from numapin_enforcer.cgroups.naming import CgroupNaming, Kind
from numapin_enforcer.cgroups.tree import Tree, parent
from numapin_enforcer.threads.findings import InheritedMask, WideThreads

WIDE_REMEDY: Final = (
    "give its pod the seccomp profile RuntimeDefault, or set kernel.io_uring_disabled=2 on the node"
)
"""Source: containerd 2, contrib/seccomp/seccomp_default.go, which does not list `io_uring_setup`;
Linux 6.6, Documentation/admin-guide/sysctl/kernel.rst, `io_uring_disabled`."""


NARROW_REMEDY: Final = (
    "update runc to 1.2.7, 1.3.1 or newer (crun to 1.25), or name all CPUs in CPUAffinity= of the "
    "runtime's systemd unit and restart it; then create the pod again"
)
"""Source: the changelog of runc; crun, `libcrun_reset_cpu_affinity_mask`; systemd.exec(5)."""


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
        return cls(one.path, one.cpus, _container(one.path, naming, names)[1], one.name)

    def why(self, cpus: CpuSet) -> str:
        """What a container with these of the CPUs lacks, and what to do."""
        return (
            f"shares CPU {cpus} with threads of {self.container}, such as {self.thread!r}, which "
            f"io_uring makes again and again with CPUs that the container has not: {WIDE_REMEDY}"
        )


@dataclass(frozen=True, slots=True)
class Confined:
    """A container whose processes may not use all CPUs of its cgroup.

    Attributes:
        path: the cgroup of the container.
        own: the CPUs of the cgroup that the processes are in: this one, or one inside it.
        usable: those that the processes may use.
        inherited: the affinity of the runtime.
        runtime: the name of the process that started the container.
        container: the container, or its cgroup, for people.
    """

    path: str
    own: CpuSet
    usable: CpuSet
    inherited: CpuSet
    runtime: str
    container: str

    @property
    def why(self) -> str:
        """What the container lacks as an exclusive one, and what to do."""
        return f"may use only CPU {self.usable} of {self.own}: it has {self._cause}"

    @property
    def note(self) -> str:
        """What shared containers lack, of which this is one, and what to do."""
        return (
            f"shared containers may use only CPU {self.usable} of {self.own}, such as "
            f"{self.container}: they have {self._cause}"
        )

    @property
    def _cause(self) -> str:
        return (
            f"inherited the CPU affinity {self.inherited} of the container runtime "
            f"({self.runtime}): {NARROW_REMEDY}"
        )


def confined(
    found: Iterable[InheritedMask],
    tree: Tree,
    naming: CgroupNaming,
    names: Mapping[str, str],
    topology: Topology,
) -> Iterator[Confined]:
    """The containers that have fewer CPUs by what was found, as far as their cgroups exist.

    Args:
        found: what their processes have inherited.
        tree: the cgroups as read last.
        naming: how their paths name containers.
        names: namespace, pod and container by the container's id, of some of them.
        topology: of the node. A cgroup with all CPUs is left out if only isolated ones cannot be
            used: no affinity, but the kernel's `isolcpus` may keep its processes off these.
    """
    for one in found:
        if one.path not in tree.cgroups:
            continue
        own = tree.cgroups[one.path].effective_cpus
        usable = one.usable(own)
        is_isolation = own == topology.online and own - usable <= topology.isolated
        if usable == own or is_isolation:
            continue
        path, container = _container(one.path, naming, names)
        yield Confined(path, own, usable, one.cpus, one.runtime, container)


def _container(path: str, naming: CgroupNaming, names: Mapping[str, str]) -> tuple[str, str]:
    """The cgroup of the container that a cgroup is, or is in; and the container, for people."""
    while naming.parse(path).kind is Kind.NESTED:
        path = parent(path)
    name = names.get(naming.parse(path).container_id)
    return path, f"container {name}" if name else f"cgroup {path}"
