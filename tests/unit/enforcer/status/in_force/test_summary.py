"""What the kernel's answer means for the status."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.in_force.summary import Summary, summarize

NAMING = CgroupNaming(Driver.CGROUPFS)
A, B, SANDBOX = (letter * 64 for letter in "abf")
NODES = MemSet([0])


def assigned(uid: str, name: str, cpus: str, *, exclusive: bool = True) -> ContainerAssignment:
    return ContainerAssignment(
        pod_uid=uid,
        namespace="d",
        pod=uid,
        container=name,
        cpus=CpuSet.parse(cpus),
        exclusive=exclusive,
    )


EXCLUSIVE = assigned("two", "main", "3")
OTHER = assigned("one", "side", "1", exclusive=False)
GONE = assigned("gone", "main", "2")
SPEC = NodeAssignmentSpec(
    pools=Pools(reserved=CpuSet([0]), shared=CpuSet([0, 1])), containers=(EXCLUSIVE, OTHER, GONE)
)
SETS = {
    "kubepods": ("0-3", None),
    "kubepods/podgone": ("0-2", None),
    "kubepods/podone": ("0-1", None),
    f"kubepods/podone/{B}": ("1", OTHER),
    "kubepods/podstranger": ("0-1", None),
    f"kubepods/podstranger/{SANDBOX}": ("0-1", None),
    "kubepods/burstable": ("0-1,3", None),
    "kubepods/burstable/podtwo": ("0-1,3", None),
    f"kubepods/burstable/podtwo/{A}": ("3", EXCLUSIVE),
}


@pytest.fixture
def summary() -> Summary:
    return summarize(SPEC, TREE, DESIRED, NAMING)


def cgroup(path: str, cpus: str) -> Cgroup:
    mask = CpuSet.parse(cpus)
    return Cgroup(path, mask, NODES, mask, NODES)


TREE = tree_of(Version.V2, "kubepods", (cgroup(path, cpus) for path, (cpus, _) in SETS.items()))
DESIRED = {
    path: Desired(CpuSet.parse(cpus), NODES, one, exclusive=one is not None and one.exclusive)
    for path, (cpus, one) in SETS.items()
}


def test_containers_are_listed_by_pod_and_name(summary: Summary) -> None:
    summarized = [
        (one.pod_uid, one.container, str(one.cpus), one.exclusive) for one in summary.containers
    ]
    assert summarized == [("one", "side", "1", False), ("two", "main", "3", True)]


def test_only_pods_of_the_spec_with_a_container_are_reported_running(summary: Summary) -> None:
    """The kubelet leaves an emptied pod's cgroup for seconds: that one runs nothing."""
    assert summary.running == ("one", "two")


def test_pools_are_what_the_kernel_has(summary: Summary) -> None:
    assert summary.pools is not None
    pools = summary.pools
    assert (str(pools.reserved), str(pools.shared), str(pools.exclusive)) == ("0", "0-1", "3")


def test_a_pool_that_is_not_in_force_yet_is_reported_as_the_kernel_has_it() -> None:
    wide = tree_of(Version.V2, "kubepods", (*TREE.cgroups.values(), cgroup("kubepods/odd", "0-2")))
    desired = DESIRED | {"kubepods/odd": Desired(CpuSet([0, 1]), NODES)}
    summarized = summarize(SPEC, wide, desired, NAMING)
    assert summarized.pools is not None
    assert str(summarized.pools.shared) == "0-2"


def test_an_unnamed_container_on_exclusive_cpus_widens_no_pool() -> None:
    unnamed = f"kubepods/podgone/{'c' * 64}"
    tree = tree_of(Version.V2, "kubepods", (*TREE.cgroups.values(), cgroup(unnamed, "2")))
    summarized = summarize(SPEC, tree, DESIRED | {unnamed: Desired(GONE.cpus, NODES)}, NAMING)
    assert summarized.pools is not None
    assert str(summarized.pools.shared) == "0-1"


def test_a_shared_pool_without_containers_is_as_in_the_spec() -> None:
    kept = {path: one for path, one in TREE.cgroups.items() if "burst" in path or "/" not in path}
    summarized = summarize(SPEC, tree_of(Version.V2, "kubepods", kept.values()), DESIRED, NAMING)
    assert summarized.pools is not None
    assert str(summarized.pools.shared) == "0-1"


def test_a_released_node_has_an_empty_summary() -> None:
    back = NodeAssignmentSpec(mode="None")
    assert summarize(back, TREE, DESIRED, NAMING) == Summary()


def test_only_running_pods_are_reported_if_nothing_is_enforced() -> None:
    assert summarize(SPEC, TREE, {}, NAMING) == Summary(running=("one", "two"))


def test_a_spec_without_pools_reports_none() -> None:
    bare = NodeAssignmentSpec()
    desired = {path: replace(one, container=None) for path, one in DESIRED.items()}
    assert summarize(bare, TREE, desired, NAMING).pools is None
