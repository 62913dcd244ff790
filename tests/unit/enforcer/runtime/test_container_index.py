"""The index finds the same containers from tree to tree as a new one would."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.runtime.container_index import ContainerIndex

NAMING = CgroupNaming(Driver.CGROUPFS)
ROOT = NAMING.root
PATHS = [
    f"{ROOT}/{place}"
    for place in (
        "besteffort",
        "pod1",
        "podx",
        *(f"{pod}/{each * 64}" for pod in ("pod1", "podx") for each in "ab"),
        f"pod1/{'a' * 64}/inside",
        f"besteffort/podx/{'a' * 64}",
        "besteffort/podx",
        "pod1/other",
    )
]
TREES = st.sets(st.sampled_from(PATHS)).map(
    lambda paths: tree_of(Version.V1, ROOT, map(cgroup, {ROOT, *paths}))
)


def cgroup(path: str) -> Cgroup:
    return Cgroup(path, CpuSet([0]), MemSet([0]), CpuSet([0]), MemSet([0]))


def index(*trees: Tree) -> ContainerIndex:
    made = ContainerIndex(NAMING)
    for tree in trees:
        made.update(tree)
    return made


def test_containers_are_found_by_their_ids_and_pods() -> None:
    one, other = f"{ROOT}/pod1/{'a' * 64}", f"{ROOT}/pod1/{'b' * 64}"
    tree = tree_of(Version.V1, ROOT, map(cgroup, (ROOT, f"{ROOT}/pod1", one, other)))
    found = index(tree)
    assert found.found == {"a" * 64: (one, "1"), "b" * 64: (other, "1")}
    assert found.of_pods(("1", "2")) == {"a" * 64, "b" * 64}


@given(TREES, TREES)
def test_an_index_that_follows_is_as_a_new_one(before: Tree, now: Tree) -> None:
    followed, new = index(before, now), index(now)
    assert followed.found.keys() == new.found.keys()
    assert all(path in now.cgroups for path, _ in followed.found.values())
    for uid in ("1", "x"):
        assert followed.of_pods((uid,)) == new.of_pods((uid,))
