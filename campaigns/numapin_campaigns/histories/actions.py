"""Histories of a node as data: what pods, runtimes, users and the kernel do around the passes.

Cgroups have short names: `burstable`; `g1`, `b2` or `e3`, a pod of the class Guaranteed, Burstable
or BestEffort; `g1/a4`, the container `a` of that pod, started as the fourth; `g1/s5`, its sandbox;
`g1/a4/n`, a cgroup inside the container. An action that is impossible at its turn does nothing, so
that a history without one of its actions is a history as well.
"""

from dataclasses import dataclass
from functools import lru_cache

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Qos

SANDBOX = "s"
_CLASSES = {"g": Qos.GUARANTEED, "b": Qos.BURSTABLE, "e": Qos.BEST_EFFORT}
_LISTED = {"burstable": Qos.BURSTABLE, "besteffort": Qos.BEST_EFFORT}


@dataclass(frozen=True)
class Make:
    """The kubelet, a runtime or a container makes a cgroup; a container's parents exist.

    On v1 these copy the parent's sets to it; a `bare` cgroup is as mkdir makes it: it has none.
    """

    cgroup: str
    bare: bool = False


@dataclass(frozen=True)
class Enter:
    """A program starts in a cgroup."""

    cgroup: str


@dataclass(frozen=True)
class End:
    """A container or pod ends: its cgroups are removed."""

    cgroup: str


@dataclass(frozen=True)
class Overwrite:
    """A runtime or a user writes a cgroup's CPUs or NUMA nodes."""

    cgroup: str
    cpus: str = ""
    mems: str = ""


@dataclass(frozen=True)
class Restrict:
    """A parent of kubepods has only these CPUs on v2: the kernel silently gives others."""

    cpus: str


@dataclass(frozen=True)
class Name:
    """The runtime lists a container, and from then on its name is known."""

    cgroup: str


@dataclass(frozen=True)
class Own:
    """A container of a spec, by pod and name, with its exclusive CPUs and its NUMA nodes."""

    pod: str
    name: str
    cpus: str = ""
    mems: str = ""


@dataclass(frozen=True)
class Assign:
    """A new spec is accepted; it is in force after the next pass at the earliest."""

    shared: str
    containers: tuple[Own, ...] = ()

    def spec(self) -> NodeAssignmentSpec:
        """As the operator writes it."""
        return _spec(self)


@lru_cache(maxsize=256)
def _spec(assign: Assign) -> NodeAssignmentSpec:
    shared = CpuSet.parse(assign.shared)
    pools = Pools(reserved=CpuSet([min(shared)]), shared=shared)
    listed = tuple(
        ContainerAssignment(
            pod_uid=one.pod,
            namespace="default",
            pod=one.pod,
            container=one.name,
            cpus=CpuSet.parse(one.cpus),
            mems=MemSet.parse(one.mems),
            exclusive=bool(one.cpus),
        )
        for one in assign.containers
    )
    return NodeAssignmentSpec(pools=pools, containers=listed)


@dataclass(frozen=True)
class Refuse:
    """The kernel fails the write number `nth` (from 0) of a pass to a cgroup."""

    cgroup: str
    nth: int
    errno: int


@dataclass(frozen=True)
class Meanwhile:
    """Something happens just before the write number `nth` (from 0) of a pass to a cgroup.

    A pass of the standby is one for a hung enforcer, which goes on with its own pass afterwards.
    """

    cgroup: str
    nth: int
    action: "Outside | StandbyPass"


@dataclass(frozen=True)
class Kill:
    """The enforcer is killed before the write number `nth` (from 0) of a pass to a cgroup."""

    cgroup: str
    nth: int


Fault = Refuse | Meanwhile | Kill


@dataclass(frozen=True)
class Pass:
    """A pass of the enforcer, and the memory moves that it leaves to do.

    With `by_runtime` the runtime then writes the CPUs that named containers only gain.
    """

    full_resync: bool = True
    faults: tuple[Fault, ...] = ()
    by_runtime: bool = False


@dataclass(frozen=True)
class FenceNew:
    """The enforcer reads the events of new cgroups and fences them before the next pass."""

    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class StandbyPass:
    """A pass of the standby; `hung` while the enforcer has the lock and makes no progress."""

    hung: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Restart:
    """The enforcer starts again and knows nothing but the accepted spec."""


@dataclass(frozen=True)
class Hold:
    """What exclusive containers have alone counts as if an earlier enforcer had reported it."""


Outside = Make | Enter | End | Overwrite | Restrict | Name
Ours = Pass | FenceNew | StandbyPass
Action = Outside | Assign | Ours | Restart | Hold


@dataclass(frozen=True)
class History:
    """A machine, and what happens on it."""

    version: int
    driver: str
    cpus: int
    numa_nodes: int
    actions: tuple[Action, ...] = ()


class Paths:
    """Short names of cgroups, and their paths with one cgroup driver."""

    def __init__(self, driver: str) -> None:
        self.naming = CgroupNaming(Driver(driver))
        self._short: dict[str, str] = {self.naming.root: ""}

    def path(self, short: str) -> str:
        """The path of a cgroup; the root is the empty name."""
        path = self._path(short)
        self._short[path] = short
        return path

    def short(self, path: str) -> str:
        """The short name of a path that was asked for before."""
        return self._short[path]

    def container_id(self, short: str) -> str:
        """The id of a container's or sandbox's cgroup."""
        _, container, *_ = short.split("/")
        return f"{ord(container[0]):02x}{int(container[1:]):062x}"

    def _path(self, short: str) -> str:
        if not short:
            return self.naming.root
        if short in _LISTED:
            return self.naming.qos_path(_LISTED[short])
        pod, *below = short.split("/")
        path = self.naming.pod_path(_CLASSES[pod[0]], pod)
        if below:
            id_ = self.container_id(short)
            systemd = self.naming.driver is Driver.SYSTEMD
            path += f"/cri-containerd-{id_}.scope" if systemd else f"/{id_}"
        return "/".join((path, *below[1:]))


def container_of(short: str) -> tuple[str, str]:
    """The pod and the name of the container that a cgroup is or lies in; empty for others.

    A sandbox has the name `s` here.
    """
    pod, _, below = short.partition("/")
    return (pod, below[0]) if below else ("", "")
