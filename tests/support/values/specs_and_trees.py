"""Small specs and trees to say of what each cgroup should have."""

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.plan.desired import desire

NAMING = CgroupNaming(Driver.CGROUPFS)
EXCLUSIVE, GUEST, SANDBOX = (letter * 64 for letter in "abf")
POD = "kubepods/pod1"
NAMES = {EXCLUSIVE: "exclusive", GUEST: "guest"}


def machine(offline: str = "") -> Topology:
    gone = CpuSet.parse(offline)
    cpus = tuple(Cpu(cpu, cpu, 0, 0, cpu // 4) for cpu in CpuSet(range(8)) - gone)
    return Topology(cpus, (NumaNode(0, 2**30), NumaNode(1, 2**30)), gone)


def assigned(
    name: str, cpus: str, mems: str = "", *, exclusive: bool = True
) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid="1",
        namespace="d",
        pod="p",
        container=name,
        cpus=CpuSet.parse(cpus),
        mems=MemSet.parse(mems),
        exclusive=exclusive,
    )


def spec(*containers: ContainerAssignment, shared: str = "0-3") -> NodeAssignmentSpec:
    pools = Pools(reserved=CpuSet.parse("0"), shared=CpuSet.parse(shared))
    return NodeAssignmentSpec(pools=pools, containers=containers)


def tree(**found: str) -> Tree:
    """Both classes, and a pod with an exclusive, a shared container and a sandbox: all on 0-7."""
    paths = {
        "kubepods": "0-7",
        "kubepods/burstable": "0-7",
        "kubepods/besteffort": "0-7",
        POD: "0-7",
        f"{POD}/{EXCLUSIVE}": found.get("exclusive", "0-7"),
        f"{POD}/{GUEST}": found.get("guest", "0-7"),
        f"{POD}/{SANDBOX}": found.get("sandbox", "0-7"),
        f"{POD}/{EXCLUSIVE}/inner": found.get("inner", found.get("exclusive", "0-7")),
    }
    paths["kubepods"] = found.get("kubepods", "0-7")
    both = MemSet([0, 1])
    return tree_of(
        Version.V1,
        "kubepods",
        (
            Cgroup(path, CpuSet.parse(cpus), both, CpuSet.parse(cpus), both)
            for path, cpus in paths.items()
        ),
    )


def cpus_of(one: NodeAssignmentSpec, observed: Tree, names: dict[str, str]) -> dict[str, str]:
    wanted = desire(one, observed, NAMING, names, machine())
    short = {EXCLUSIVE: "exclusive", GUEST: "guest", SANDBOX: "sandbox"}
    return {
        short.get(path.rpartition("/")[2], path.rpartition("/")[2]): str(want.cpus)
        for path, want in wanted.items()
    }
