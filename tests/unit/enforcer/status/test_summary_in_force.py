import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.status.exclusivity import Evidence
from numapin_enforcer.status.summary import in_force

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
    (found_in_force,) = in_force(observed(**found), WANTED)
    assert (found_in_force.path, found_in_force.container, found_in_force.exclusive) == (
        "k/pod/own",
        EXCLUSIVE,
        exclusive,
    )
    assert str(found_in_force.cpus) == found.get("own", "2-3")


def test_a_container_is_not_exclusive_while_its_cpus_may_be_given_to_another() -> None:
    for path, cpus, exclusive in (("k/far", "3", False), ("k/far", "0-1", True), ("k", "2", True)):
        (found_in_force,) = in_force(
            observed(), WANTED, Evidence(stale_cpus={path: CpuSet.parse(cpus)})
        )
        assert found_in_force.exclusive is exclusive, path
