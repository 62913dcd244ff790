"""The sets of ancestors up to kubepods, and all exclusive CPUs together."""

import pytest

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.plan.containment import Desired, contain
from numapin_enforcer.plan.desired import exclusive_cpus, release
from support.values.specs_and_trees import assigned, machine, tree


def test_after_release_every_cgroup_has_what_kubepods_has() -> None:
    observed = tree(kubepods="0-6", exclusive="5")
    wanted = release(observed, machine())
    assert list(wanted) == list(observed.cgroups)
    assert {str(want.cpus) for want in wanted.values()} == {"0-6"}
    assert {str(want.mems) for want in wanted.values()} == {"0-1"}


def chain(cpus: str = "0-7", mems: str = "0-1", version: Version = Version.V2) -> Tree:
    """kubepods and three cgroups, each the child of the one before."""
    sets = CpuSet.parse(cpus), MemSet.parse(mems)
    paths = ("kubepods", "kubepods/a", "kubepods/a/b", "kubepods/a/b/c")
    return tree_of(version, "kubepods", (Cgroup(path, *sets, *sets) for path in paths))


def test_ancestors_contain_the_desired_sets_of_their_descendants() -> None:
    one, node = assigned("exclusive", "3"), MemSet([0])
    wanted = {
        "kubepods/a": Desired(CpuSet([0]), node),
        "kubepods/a/b": Desired(CpuSet([0, 1]), node, one, exclusive=True),
        "kubepods/a/b/c": Desired(CpuSet([3]), MemSet([1])),
    }
    held = contain(chain(), wanted, machine())
    found = {path: (str(want.cpus), str(want.mems)) for path, want in held.items()}
    assert found == {
        "kubepods": ("0-7", "0-1"),
        "kubepods/a": ("0-1,3", "0-1"),
        "kubepods/a/b": ("0-1,3", "0-1"),
        "kubepods/a/b/c": ("3", "1"),
    }
    assert held["kubepods/a/b"].exclusive_container == "1/exclusive"
    assert held["kubepods/a/b/c"] is wanted["kubepods/a/b/c"]


@pytest.mark.parametrize(
    ("cpus", "mems", "offline", "root"),
    [
        ("0-5", "0-1", "", ("0-5", "0-1")),
        ("0-5", "0-1", "5", ("0-4", "0-1")),
        ("0-5", "0", "", ("0-5", "0")),
        ("0-5", "1", "", ("0-5", "0-1")),
        ("", "0-1", "", ("0-7", "0-1")),
        ("7", "0-1", "7", ("0-6", "0-1")),
        ("2-5", "0-1", "", ("0-7", "0-1")),
        ("1-5", "0-1", "", ("1-5", "0-1")),
        ("0-5", "0-2", "", ("0-5", "0-2")),
    ],
    ids=[
        "as found",
        "without offline CPUs",
        "narrowed to some NUMA nodes",
        "without a NUMA node that a container is bound to",
        "just created",
        "all offline",
        "too narrow",
        "wide enough without the first CPU",
        "with the NUMA node of a device",
    ],
)
def test_on_v1_kubepods_is_unchanged_or_gets_every_cpu_and_the_numa_nodes_below(
    cpus: str, mems: str, offline: str, root: tuple[str, str]
) -> None:
    found = chain(cpus, mems, Version.V1)
    below = dict.fromkeys(found.parents, Desired(CpuSet([1]), MemSet([0])))
    if cpus in {"", "7"}:
        found, below = tree_of(Version.V1, "kubepods", [found.cgroups["kubepods"]]), {}
    held = contain(found, below, machine(offline))["kubepods"]
    assert (str(held.cpus), str(held.mems)) == root


def test_on_v2_kubepods_is_as_an_administrator_has_set_it() -> None:
    found = chain("2-5", "1")
    below = dict.fromkeys(found.parents, Desired(CpuSet([1]), MemSet([0])))
    held = contain(found, below, machine())["kubepods"]
    assert (str(held.cpus), str(held.mems)) == ("2-5", "1")


def test_exclusive_cpus_are_those_of_exclusive_containers() -> None:
    exclusive, guest = assigned("exclusive", "5"), assigned("guest", "6", exclusive=False)
    wanted = [
        Desired(CpuSet([5]), MemSet([0]), exclusive, exclusive=True),
        Desired(CpuSet([6]), MemSet([0]), guest),
        Desired(CpuSet([0]), MemSet([0])),
    ]
    assert exclusive_cpus(wanted) == CpuSet([5])
    assert exclusive_cpus([]) == CpuSet()
