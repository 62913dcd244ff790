from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.cpu_index import CpuIndex
from numapin_enforcer.status.in_force.exclusivity import Evidence
from numapin_enforcer.status.in_force.memory import bound_pods
from numapin_enforcer.status.in_force.summary import in_force

MEMS = MemSet([0])
EXCLUSIVE = ContainerAssignment(
    pod_uid="1", namespace="d", pod="p", container="c", cpus=CpuSet([2, 3]), exclusive=True
)
WANTED = {
    "k": Desired(CpuSet(range(4)), MEMS),
    "k/pod": Desired(CpuSet(range(4)), MEMS),
    "k/pod/own": Desired(CpuSet([2, 3]), MEMS, EXCLUSIVE, exclusive=True),
    "k/pod/own/in": Desired(CpuSet([2, 3]), MEMS, EXCLUSIVE, exclusive=True),
    "k/pod/own/narrow": Desired(CpuSet([2]), MEMS, EXCLUSIVE, exclusive=True),
    "k/pod/other": Desired(CpuSet([0, 1]), MEMS),
    "k/far": Desired(CpuSet([0, 1]), MEMS),
}


def observed(**found: str) -> Tree:
    cgroups = []
    for path, want in WANTED.items():
        text = found.get(path.rpartition("/")[2])
        cpus = CpuSet.parse(text) if text else want.cpus
        cgroups.append(Cgroup(path, cpus, MEMS, cpus, MEMS))
    return tree_of(Version.V1, "k", cgroups)


@pytest.mark.parametrize(
    ("found", "exclusive"),
    [
        ({}, True),
        ({"other": "1-2"}, False),
        ({"far": "3"}, False),
        ({"own": "2"}, False),
        ({"own": "1-3"}, False),
        ({"in": "2"}, True),
        ({"narrow": "2-3"}, True),
        ({"far": "1"}, True),
    ],
)
def test_a_container_is_exclusive_when_no_other_has_its_cpus(
    found: dict[str, str], exclusive: bool
) -> None:
    (found_in_force,) = in_force(CpuIndex(observed(**found), WANTED))
    assert (found_in_force.path, found_in_force.container, found_in_force.exclusive) == (
        "k/pod/own",
        EXCLUSIVE,
        exclusive,
    )
    assert str(found_in_force.cpus) == found.get("own", "2-3")


def test_a_container_is_not_exclusive_while_its_cpus_may_be_given_to_another() -> None:
    for path, cpus, exclusive in (("k/far", "3", False), ("k/far", "0-1", True), ("k", "2", True)):
        (found_in_force,) = in_force(
            CpuIndex(observed(), WANTED), Evidence(stale_cpus={path: CpuSet.parse(cpus)})
        )
        assert found_in_force.exclusive is exclusive, path


@pytest.mark.parametrize(
    ("bound", "asked", "effective", "said"),
    [
        (True, "1", "1", None),
        (False, "0", "0", None),
        (True, "0", "0", ("Applying", "container d/p/c has NUMA node 0 instead of 1 so far")),
        (True, "0-1", "0-1", ("Applying", "container d/p/c has NUMA node 0-1 instead of 1 so far")),
        (
            True,
            "1",
            "0",
            (
                "MemoryWithheld",
                "container d/p/c has NUMA node 0 instead of 1: "
                "give 1 to the parents of cgroup k/pod/own (cpuset.mems)",
            ),
        ),
    ],
)
def test_memory_on_other_numa_nodes_is_lacking(
    bound: bool, asked: str, effective: str, said: tuple[str, str] | None
) -> None:
    container = replace(EXCLUSIVE, mems=MemSet([1]) if bound else MemSet())
    wanted = WANTED | {"k/pod/own": Desired(CpuSet([2, 3]), MemSet([1]), container, exclusive=True)}
    cpus = CpuSet([2, 3])
    own = Cgroup("k/pod/own", cpus, MemSet.parse(asked), cpus, MemSet.parse(effective))
    (found,) = in_force(CpuIndex(observed().with_changes({own.path: own}), wanted))
    assert found.exclusive
    lack = found.unbound
    assert said == (lack and (str(lack.reason), str(lack)))


@pytest.mark.parametrize(
    ("has", "bound"), [("1", {"1"}), ("0-1", set())], ids=["bound", "too-much-to-move"]
)
def test_a_pod_whose_memory_is_not_moved_does_not_count_as_bound(has: str, bound: set[str]) -> None:
    container = replace(EXCLUSIVE, mems=MemSet([1]))
    wanted = WANTED | {"k/pod/own": Desired(CpuSet([2, 3]), MemSet([1]), container, exclusive=True)}
    cpus, mems = CpuSet([2, 3]), MemSet.parse(has)
    own = Cgroup("k/pod/own", cpus, mems, cpus, mems)
    tree = observed().with_changes({own.path: own})
    spec = NodeAssignmentSpec(containers=(container,))
    assert bound_pods(spec, tree, wanted) == bound
