from random import Random

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_enforcer.hardware.sysfs.siblings import merge_groups

STATEMENTS = st.dictionaries(
    st.integers(0, 20), st.sets(st.integers(0, 24), max_size=4).map(CpuSet), max_size=16
)


@given(STATEMENTS)
def test_groups_are_disjoint_and_hold_each_cpu_with_all_it_named(
    stated: dict[int, CpuSet],
) -> None:
    groups, disagreeing = merge_groups(stated)
    known = CpuSet(stated)
    members = [cpu for group in groups for cpu in group]
    assert sorted(members) == list(known)
    assert [min(group) for group in groups] == sorted(min(group) for group in groups)
    for cpu, named in stated.items():
        (group,) = [group for group in groups if cpu in group]
        assert named & known <= group
        agrees = (named & known) | CpuSet([cpu]) == group
        assert agrees == (cpu not in disagreeing)


@given(STATEMENTS)
def test_no_group_is_larger_than_statements_join(stated: dict[int, CpuSet]) -> None:
    for group in merge_groups(stated)[0]:
        reached = CpuSet([min(group)])
        while True:
            wider = reached
            for cpu, named in stated.items():
                link = named & CpuSet(stated) | CpuSet([cpu])
                if not link.isdisjoint(reached):
                    wider |= link
            if wider == reached:
                break
            reached = wider
        assert reached == group


@given(STATEMENTS, st.randoms(use_true_random=False))
def test_the_order_of_statements_does_not_matter(stated: dict[int, CpuSet], random: Random) -> None:
    shuffled = list(stated.items())
    random.shuffle(shuffled)
    assert merge_groups(dict(shuffled)) == merge_groups(stated)
