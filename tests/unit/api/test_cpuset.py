import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from numapin_api.cpuset import CpuSet, ListFormatError, MemSet

ids = st.frozensets(st.integers(0, 300))


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("", []),
        ("0", [0]),
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("8,0-1,1-2", [0, 1, 2, 8]),
        ("5-5", [5]),
        ("8191", [8191]),
    ],
)
def test_parse_reads_the_kernels_lists(text: str, members: list[int]) -> None:
    assert list(CpuSet.parse(text)) == members


@pytest.mark.parametrize(
    "text", ["a", "1-", "-1", "3-1", "0 1", "1,", ",", "0x1", "70000", "1\n", "0-3:1/2", "٣"]
)
def test_parse_refuses_what_is_no_list_and_says_so(text: str) -> None:
    with pytest.raises(ListFormatError, match="write it like 0-3,8"):
        CpuSet.parse(text)


@given(ids)
def test_text_and_back(members: frozenset[int]) -> None:
    cpus = CpuSet(members)
    assert CpuSet.parse(str(cpus)) == cpus
    assert list(cpus) == sorted(members)
    assert len(cpus) == len(members)
    assert eval(repr(cpus)) == cpus
    assert pickle.loads(pickle.dumps(cpus)) == cpus


@given(ids, ids)
def test_algebra_is_that_of_sets_and_keeps_the_type(a: frozenset[int], b: frozenset[int]) -> None:
    x, y = CpuSet(a), CpuSet(b)
    for got, want in [(x | y, a | b), (x & y, a & b), (x - y, a - b), (x ^ y, a ^ b)]:
        assert type(got) is CpuSet
        assert set(got) == want
    assert (x <= y, x < y, x >= y, x > y) == (a <= b, a < b, a >= b, a > b)
    assert (x == y) == (a == b)
    assert x.isdisjoint(y) == a.isdisjoint(b)
    assert bool(x) == bool(a)


def test_union_holds_the_members_of_all_sets() -> None:
    assert CpuSet.union([CpuSet([1]), CpuSet([0, 5])]) == CpuSet([0, 1, 5])
    assert CpuSet.union([]) == CpuSet()


def test_members_are_grouped_in_ascending_order() -> None:
    groups = CpuSet.grouped([(7, 3), (-1, 0), (7, 1)])
    assert list(groups.items()) == [(-1, CpuSet([0])), (7, CpuSet([1, 3]))]


def test_cpus_and_numa_nodes_do_not_mix() -> None:
    with pytest.raises(TypeError, match="does not mix"):
        CpuSet([0]) | MemSet([0])  # type: ignore[operator]
    assert CpuSet([0]) != MemSet([0])


def test_a_set_is_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        CpuSet([0])._mask = 3


class _Model(BaseModel):
    cpus: CpuSet


def test_on_the_wire_it_is_a_kernel_list() -> None:
    assert _Model.model_validate({"cpus": "2,0-1"}).model_dump() == {"cpus": "0-2"}
    with pytest.raises(ValidationError, match="write it like"):
        _Model.model_validate({"cpus": "x"})
