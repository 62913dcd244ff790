"""Exclusive sets of a spec that overlap."""

import pytest

from numapin_campaigns.laws.assignment import overlaps


def container(name: str, cpus: str, exclusive: bool = True) -> dict[str, object]:
    return {"pod": name, "container": "main", "cpus": cpus, "exclusive": exclusive}


@pytest.mark.parametrize(
    ("containers", "found"),
    [
        ([container("a", "2"), container("b", "3")], []),
        ([container("a", "2-3"), container("b", "3")], ["a/main and b/main both have 3"]),
        ([container("a", "1-2")], ["a/main and shared both have 1"]),
        ([container("a", "0-1", exclusive=False)], []),
    ],
)
def test_what_overlaps_is_named(containers: list[dict[str, object]], found: list[str]) -> None:
    assert overlaps({"pools": {"shared": "0-1"}, "containers": containers}) == found


def test_an_empty_spec_has_no_overlap() -> None:
    assert overlaps({}) == []
