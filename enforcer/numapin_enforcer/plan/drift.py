"""External cpuset changes that were reverted: found and described."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_enforcer.cgroups.tree import Cgroup, Tree, differing, has_processes, parent
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import exclusive_cpus


class Cause(StrEnum):
    """What the external change did, the worst first."""

    INTRUSION = "Intrusion"
    """A cgroup on the exclusive CPUs of another container."""
    OWNER_MOVED = "OwnerMoved"
    """An exclusive container on other CPUs, or not on all of its own."""
    STRAYED = "Strayed"
    """A shared cgroup outside the shared pool, or not on all of it."""
    MEMORY = "Memory"
    """The desired CPUs, but other NUMA nodes."""
    HOST_PROCESSES = "HostProcesses"
    """A cgroup of no pod, which has been kept off exclusive CPUs, on other CPUs."""
    INTERRUPT = "Interrupt"
    """No cpuset: an interrupt on exclusive CPUs."""
    CACHE = "Cache"
    """No cpuset: ways of a cache, or memory bandwidth, in resctrl."""
    PARTITION = "Partition"
    """No cpuset: an exclusive container that was a partition is none any more."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One external change of a cgroup's cpuset that was reverted.

    `exclusive_cpus` are those of all containers, its own included; `is_exclusive` is true if it
    belongs to an exclusive container, and `is_of_host` if it is beside the kubelet's cgroups.
    """

    path: str
    found: tuple[CpuSet, MemSet]
    meant: tuple[CpuSet, MemSet]
    container: ContainerAssignment | None = None
    exclusive_cpus: CpuSet = CpuSet()
    is_exclusive: bool = False
    is_of_host: bool = False

    @property
    def cause(self) -> Cause:
        """What the change did."""
        if self.is_of_host:
            return Cause.HOST_PROCESSES
        found, meant = self.found[0], self.meant[0]
        if found == meant:
            return Cause.MEMORY
        if (found - meant) & self.exclusive_cpus:
            return Cause.INTRUSION
        return Cause.OWNER_MOVED if self.is_exclusive else Cause.STRAYED

    def __str__(self) -> str:
        parts = (
            f"{name} {found or 'none'} instead of {meant}"
            for name, found, meant in zip(("cpus", "mems"), self.found, self.meant, strict=True)
            if found != meant
        )
        return f"{self.subject} had {' and '.join(parts)}; reverted"

    @property
    def subject(self) -> str:
        """The container by namespace, pod and name; else the cgroup."""
        if self.container is None:
            return f"cgroup {self.path}"
        one = self.container
        return f"container {one.namespace}/{one.pod}/{one.container}"


class DriftDetector:
    """Finds external changes of cpusets that had their desired value."""

    def __init__(self, has_tasks: Callable[[str], bool]) -> None:
        """Args: `has_tasks` says whether a process runs in the cgroup itself.

        It may raise `CgroupError`.
        """
        self._has_tasks = has_tasks
        self._in_force: dict[str, Desired] = {}
        """What cgroups had to have at the last call, and had."""
        self._seen: tuple[Mapping[str, Cgroup], Mapping[str, Desired]] = ({}, {})

    def detect(self, tree: Tree, desired: Mapping[str, Desired]) -> list[Drift]:
        """Cgroups that had their desired set at the last call, must still have it, and do not.

        A change that only follows from a parent's is left out. So is one of a cgroup without
        processes: the runtime may still be setting it up.
        """
        changed: set[str] = set()
        drifts: list[Drift] = []
        for path in self._changed(tree, desired):
            meant, cgroup, known = desired[path], tree.cgroups[path], self._in_force.pop(path, None)
            found = (cgroup.effective_cpus, cgroup.effective_mems)
            sets = (meant.cpus, meant.mems)
            if found == sets:
                self._in_force[path] = meant
            elif known == meant and path != tree.root:
                changed.add(path)
                if parent(path) not in changed and has_processes(tree, path, self._has_tasks):
                    exclusive = exclusive_cpus(desired.values())
                    is_exclusive = bool(meant.exclusive_container)
                    one = Drift(path, found, sets, meant.container, exclusive, is_exclusive)
                    drifts.append(one)
        return drifts

    def forget(self) -> None:
        """Start again: no cgroup is known to have had its desired set."""
        self._in_force, self._seen = {}, ({}, {})

    def _changed(self, tree: Tree, desired: Mapping[str, Desired]) -> list[str]:
        """Cgroups that differ from the last call in what they have or must have; parents first."""
        (cgroups, wanted), self._seen = self._seen, (tree.cgroups, desired)
        for path in self._in_force.keys() - desired.keys() if desired is not wanted else ():
            del self._in_force[path]
        changed = {*differing(tree.cgroups, cgroups), *differing(desired, wanted)}
        return [path for path in desired if path in changed] if changed else []
