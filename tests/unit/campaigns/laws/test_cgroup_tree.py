"""A CPU that a cgroup must have alone, and that another one has."""

import pytest

from numapin_api.cpuset import CpuSet
from numapin_campaigns.laws.cgroup_tree import alone, shared

OWNER = "kubepods/poda/x"


@pytest.mark.parametrize(
    ("other", "cpus", "both"),
    [
        ("kubepods/podb/y", "0-2", "2"),
        ("kubepods/podb/y", "0-1", ""),
        ("kubepods/poda/sandbox", "2-3", "2-3"),
        ("kubepods/poda", "0-3", ""),
        ("kubepods/poda/x/nested", "2", ""),
        ("kubepods/poda/xy", "3", "3"),
    ],
    ids=["neighbour", "apart", "sandbox of its pod", "parent", "child", "like its name"],
)
def test_only_cgroups_that_are_not_related_share(other: str, cpus: str, both: str) -> None:
    has = {OWNER: CpuSet.parse("2-3"), other: CpuSet.parse(cpus)}
    found = list(shared({OWNER: CpuSet.parse("2-3")}, has))
    assert [(one.owner, one.other, str(one.cpus)) for one in found] == (
        [(OWNER, other, both)] if both else []
    )
    masks = list(shared({OWNER: 0b1100}, {path: one.mask for path, one in has.items()}))
    assert [one.cpus for one in masks] == [one.cpus.mask for one in found]
    assert alone(OWNER, has) == CpuSet.parse("2-3") - CpuSet.parse(both)
