"""Masks against Python's sets."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.placement.masks import NO_CPUS, CpuMask, lowest, members, numa_mask

IDS = st.sets(st.integers(0, 300))


def cpu_mask(cpus: set[int]) -> CpuMask:
    return CpuMask(sum(1 << cpu for cpu in cpus))


@given(IDS)
def test_a_mask_has_the_members_that_it_was_made_of(ids: set[int]) -> None:
    assert list(members(cpu_mask(ids))) == sorted(ids)
    assert list(members(numa_mask(ids))) == sorted(ids)


@given(IDS, st.integers(0, 310))
def test_the_lowest_members_are_the_lowest(ids: set[int], count: int) -> None:
    assert list(members(lowest(cpu_mask(ids), count))) == sorted(ids)[:count]


@given(IDS, IDS)
def test_operators_are_those_of_sets(one: set[int], other: set[int]) -> None:
    a, b = cpu_mask(one), cpu_mask(other)
    assert set(members(a & b)) == one & other
    assert set(members(a | b)) == one | other
    assert set(members(a & ~b)) == one - other
    assert a & ~a == NO_CPUS
