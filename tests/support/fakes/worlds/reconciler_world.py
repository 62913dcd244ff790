"""A small world for passes: the kernel model with two pods, and a reconciler of their cgroups."""

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import ModelWatch, WatchedModel
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.goals import AssignmentGoal, ReleaseGoal
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.reconciler import Reconciler

NAMING = CgroupNaming(Driver.CGROUPFS)
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(8)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)
ALL = CpuSet.parse("0-7")
A, B, C = (letter * 64 for letter in "abc")
EXCLUSIVE, OTHER = "kubepods/podexclusive", "kubepods/besteffort/podother"
NAMES = {A: "main", B: "main"}


def own(uid: str, cpus: str) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=uid,
        namespace="default",
        pod=uid,
        container="main",
        cpus=CpuSet.parse(cpus),
        exclusive=True,
    )


class World:
    """A running pod with an exclusive container beside a best-effort one, and their reconciler."""

    def __init__(self, version: Version, mems: MemSet = MemSet((0,)), most_checks: int = 0) -> None:
        self.model = WatchedModel(version, ALL, mems)
        self.watch = ModelWatch(self.model)
        self.snapshot = TreeCache(self.model, self.watch)
        self.reconciler = Reconciler(self.model, self.snapshot, NAMING, most_checks)
        self.make("kubepods/besteffort")
        for path in (f"{EXCLUSIVE}/{A}", f"{OTHER}/{B}"):
            self.start(path)

    def start(self, path: str) -> None:
        """Start a container, and its pod if it does not exist."""
        for one in (path.rpartition("/")[0], path):
            if one not in self.model.groups:
                self.make(one)
        self.model.enter(path)

    def make(self, path: str) -> None:
        """Make a cgroup as kubelet and runc do: on v1 with its parent's sets."""
        self.model.make(path)
        above = self.model.groups[path.rpartition("/")[0]]
        if self.model.version is Version.V1:
            self.overwrite(path, str(above.cpus))
            self.model.write(Write(path, above.mems, Step.PREPARE))

    def overwrite(self, path: str, cpus: str) -> None:
        self.model.write(Write(path, CpuSet.parse(cpus), Step.PREPARE))

    def run(self, spec: NodeAssignmentSpec | None, *, everything: bool = False) -> Converged:
        goal = ReleaseGoal(MACHINE) if spec is None else AssignmentGoal(spec, MACHINE, NAMES)
        return self.reconciler.converge(goal, full_resync=everything)

    def cpus(self, path: str) -> str:
        return str(self.model.read().cgroups[path].effective_cpus)
