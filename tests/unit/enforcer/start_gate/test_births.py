"""With which sets a container may be made: never with CPUs that another cgroup has."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version
from numapin_enforcer.plan.desired import Rules, desire
from numapin_enforcer.start_gate.births import born_with

UID, OTHER = "00000000-1111-4111-8111-000000000001", "00000000-1111-4111-8111-000000000002"
SANDBOX, SECOND = "a" * 64, "b" * 64
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)
NAMING = CgroupNaming(Driver.CGROUPFS)


def assigned(cpus: str = "3", name: str = "main", **more: object) -> ContainerAssignment:
    given = {"mems": MemSet(), "exclusive": bool(cpus)} | more
    return ContainerAssignment(UID, "d", "p", name, CpuSet.parse(cpus), **given)  # type: ignore[arg-type]


def tree(sets: dict[str, str], mems: str = "0-1") -> Tree:
    """Below kubepods, which has all; of each path the CPUs that it has."""
    nodes = MemSet.parse(mems)
    found = {"kubepods": "0-3", **{f"kubepods/{path}": cpus for path, cpus in sets.items()}}
    return Tree(
        Version.V2,
        "kubepods",
        {
            path: Cgroup(path, CpuSet.parse(cpus), nodes, CpuSet.parse(cpus), nodes)
            for path, cpus in found.items()
        },
    )


def born(one: ContainerAssignment, found: Tree, *others: ContainerAssignment) -> str | None:
    """The CPUs and NUMA nodes that it may be made with; None if it may not have its own."""
    spec = NodeAssignmentSpec(
        pools=Pools(CpuSet.parse("0"), CpuSet.parse("0-1")), containers=(one, *others)
    )
    names = {SANDBOX: "", SECOND: "second"}
    desired = desire(spec, found, NAMING, names, MACHINE)
    made = born_with(one, Rules(spec, NAMING, MACHINE), found, desired, NAMING)
    return f"{made.cpus}/{made.mems}" if made is not None else None


READY = {f"pod{UID}": "0-1,3", f"pod{UID}/{SANDBOX}": "0-1"}


def test_it_may_have_cpus_that_nothing_else_has() -> None:
    assert born(assigned(mems=MemSet.parse("1")), tree(READY)) == "3/1"


@pytest.mark.parametrize(
    ("sets", "one"),
    [
        pytest.param({}, assigned(), id="the pod has no cgroup"),
        pytest.param({f"pod{UID}": "0-1"}, assigned(), id="the pod does not have them yet"),
        pytest.param(
            {f"pod{UID}": "0-1,3", f"pod{UID}/{SANDBOX}": "0-1,3"},
            assigned(),
            id="its own sandbox has them still",
        ),
        pytest.param({**READY, f"pod{OTHER}": "0-1,3"}, assigned(), id="another pod has them"),
        pytest.param(
            {**READY, f"pod{OTHER}": "0-3", f"pod{OTHER}/{SECOND}": "3"},
            assigned(),
            id="another pod's container has them",
        ),
        pytest.param({**READY, "besteffort": "0-3"}, assigned(), id="a QoS class has them"),
        pytest.param({**READY, "other": "3"}, assigned(), id="an unknown cgroup has them"),
        pytest.param(READY, assigned("3,9"), id="a CPU is not online"),
        pytest.param(READY, assigned("9"), id="none is online"),
    ],
)
def test_it_may_not_have_them(sets: dict[str, str], one: ContainerAssignment) -> None:
    expected = "3/" if "9" in str(one.cpus) and "3" in str(one.cpus) else None
    assert born(one, tree(sets)) == expected


def test_it_may_not_have_numa_nodes_that_the_pod_lacks() -> None:
    assert born(assigned(mems=MemSet.parse("1")), tree(READY, mems="0")) is None


def test_containers_of_a_pod_may_have_the_same_cpus() -> None:
    """As an init container and the container after it."""
    found = tree({**READY, f"pod{UID}/{SECOND}": "3"})
    assert born(assigned(), found, assigned(name="second")) == "3/"


def test_a_burstable_pod_is_found_below_its_class() -> None:
    below = {f"burstable/{path}": cpus for path, cpus in READY.items()}
    assert born(assigned(), tree({"burstable": "0-1,3", **below})) == "3/"


def test_a_shared_container_may_have_numa_nodes() -> None:
    assert born(assigned("", mems=MemSet.parse("1")), tree(READY)) == "0-1/1"
