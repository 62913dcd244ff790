"""Which cgroup contains which, by their paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, contains, parent, related, tree_of


@pytest.mark.parametrize(
    ("ancestor", "path", "expected"),
    [("k", "k", True), ("k", "k/pod/c", True), ("k/pod", "k", False), ("k/pod", "k/pod2", False)],
)
def test_a_cgroup_contains_itself_and_its_descendants(
    ancestor: str, path: str, expected: bool
) -> None:
    assert contains(ancestor, path) == expected


def test_siblings_are_not_related() -> None:
    assert related("k/pod/c", "k/pod")
    assert related("k/pod", "k/pod/c")
    assert not related("k/pod/a", "k/pod/b")


PATHS = ["k", "k/a", "k/a/1", "k/a/1/x", "k/a/2", "k/b", "k/b/1", "k/a-", "k/a-/1"]


def cgroup(path: str, cpus: int) -> Cgroup:
    return Cgroup(path, CpuSet([cpus]), MemSet([0]), CpuSet([cpus]), MemSet([0]))


@given(
    st.lists(st.dictionaries(st.sampled_from(PATHS[1:]), st.none() | st.integers(0, 2)), max_size=6)
)
def test_a_tree_with_changes_is_the_tree_that_is_read_as_a_whole(
    steps: list[dict[str, int | None]],
) -> None:
    tree = tree_of(Version.V1, "k", [cgroup(path, 0) for path in PATHS])
    for step in steps:
        found = {path: None if one is None else cgroup(path, one) for path, one in step.items()}
        rest = [one for path, one in tree.cgroups.items() if path not in found]
        kept = [one for one in rest if not is_below_any(one.path, found)]
        expected = tree_of(Version.V1, "k", [*kept, *filter(None, found.values())])
        tree = tree.with_changes(found)
        assert tree == expected
        assert tree.parents == expected.parents
        assert {path: set(below) for path, below in tree.children.items()} == {
            path: set(below) for path, below in expected.children.items()
        }
        assert all(parent(path) in seen for path, seen in seen_before(tree) if path != "k")


def is_below_any(path: str, found: dict[str, Cgroup | None]) -> bool:
    return any(one is None and contains(gone, path) for gone, one in found.items())


def seen_before(tree: Tree) -> list[tuple[str, list[str]]]:
    paths = list(tree.cgroups)
    return [(path, paths[:index]) for index, path in enumerate(paths)]


def test_a_tree_without_a_difference_is_the_same_object() -> None:
    tree = tree_of(Version.V1, "k", [cgroup(path, 0) for path in PATHS])
    assert tree.with_changes({"k/a": cgroup("k/a", 0), "k/gone": None}) is tree
    changed = tree.with_changes({"k/a": cgroup("k/a", 1), "k/b": cgroup("k/b", 0)})
    assert changed.cgroups["k/b"] is tree.cgroups["k/b"]
