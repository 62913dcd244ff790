"""Which cgroup contains which, by their paths."""

import pytest

from numapin_enforcer.cgroups.tree import contains, related


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
