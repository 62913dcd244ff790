"""What the runtime is to remember: what the kernel has of owners, and nothing of anybody else."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.cgroups.naming import Driver, Layout
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.desired import Desired
from numapin_enforcer.runtime.client import ContainerResources
from numapin_enforcer.runtime.records import find_containers, resources_to_send

ROOT, POD = "kubepods", "kubepods/pod1"
A, B = f"{POD}/{'a' * 64}", f"{POD}/{'b' * 64}"
BOTH, ONE = MemSet([0, 1]), CpuSet([1])


def told(
    found: str, *, exclusive: bool = True, mems: str = "", before: ContainerResources | None = None
) -> ContainerResources | None:
    """What is to be told of a container that should have CPU 1."""
    cpus, nodes = CpuSet.parse(found), MemSet.parse(mems)
    container = ContainerAssignment(
        pod_uid="1",
        namespace="d",
        pod="p",
        container="c",
        cpus=ONE,
        mems=nodes,
        exclusive=exclusive,
    )
    tree = tree_of(
        Version.V1, ROOT, [Cgroup(path, cpus, BOTH, cpus, BOTH) for path in (ROOT, POD, A)]
    )
    wanted = Desired(ONE, nodes or BOTH, container, exclusive=exclusive)
    return resources_to_send({A: wanted}, tree, A, before)


OLD = ContainerResources(CpuSet([3]))


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (ContainerResources(ONE), told("1")),
        (ContainerResources(ONE, MemSet([0])), told("1", mems="0")),
        (None, told("0")),
        (OLD, told("0", before=OLD)),
        (None, told("1", exclusive=False)),
        (ContainerResources(ONE), told("1", exclusive=False, before=OLD)),
        (
            ContainerResources(ONE, BOTH),
            told("1", exclusive=False, before=ContainerResources(CpuSet([3]), MemSet([0]))),
        ),
    ],
    ids=[
        "an owner",
        "an owner with memory",
        "an owner that the kernel has elsewhere",
        "one that was told before and is elsewhere",
        "one that shares",
        "a former owner",
        "a former owner with memory",
    ],
)
def test_what_is_told(
    expected: ContainerResources | None, found: ContainerResources | None
) -> None:
    assert found == expected


def test_of_a_cgroup_that_nothing_is_wanted_of_nothing_is_told() -> None:
    tree = tree_of(Version.V1, ROOT, [Cgroup(ROOT, ONE, BOTH, ONE, BOTH)])
    assert resources_to_send({}, tree, ROOT, OLD) is None


def test_containers_are_found_by_their_ids() -> None:
    tree = tree_of(
        Version.V1, ROOT, [Cgroup(path, ONE, BOTH, ONE, BOTH) for path in (ROOT, POD, A, B)]
    )
    found = dict(find_containers(tree, Layout(Driver.CGROUPFS)))
    assert found == {"a" * 64: (A, "1"), "b" * 64: (B, "1")}
