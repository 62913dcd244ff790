"""Which ways and which bandwidth exclusive CPUs get, and what the others keep."""

from dataclasses import replace

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.resctrl.plan import plan
from numapin_enforcer.resctrl.values import (
    GROUP,
    NOTHING,
    Group,
    Kernel,
    Key,
    Record,
    Saved,
    Steps,
    Wanted,
    Ways,
)

CPUS = CpuSet.parse("2-3")
WAYS = Ways(whole=0x7FF, least=1, hardware=0x600)
STEPS = Steps(least=10, step=10)
FOUND: dict[Key, int] = {("L3", 0): 0x7FF, ("L3", 1): 0x7FF, ("MB", 0): 100, ("MB", 1): 100}
KERNEL = Kernel(FOUND, ways=WAYS, steps=STEPS)
WANTED = Wanted(CPUS, frozenset({1}), l3_percent=40)


def test_a_cache_that_exclusive_cpus_use_is_divided() -> None:
    made = plan(KERNEL, WANTED, Record())
    assert made.default == {("L3", 1): 0x7E0}
    assert made.ours == {("L3", 1): 0x1F, ("MB", 1): 100}
    assert made.cpus == CPUS
    assert made.record == Record({("L3", 1): Saved(0x7FF, frozenset({0x7E0}))}, {1: 0x1F})
    assert made.problems == ()


def test_all_caches_are_divided_where_it_is_unknown_which_ones_are_used() -> None:
    made = plan(KERNEL, replace(WANTED, caches=frozenset({-1})), Record())
    assert made.default == {("L3", 0): 0x7E0, ("L3", 1): 0x7E0}


@pytest.mark.parametrize(
    ("rules", "percent", "mask"),
    [
        (WAYS, 1, 0x1),
        (replace(WAYS, least=2), 1, 0x3),
        (WAYS, 99, 0),
        (WAYS, 90, 0x3FF),
        (replace(WAYS, hardware=0x3), 40, 0x7C0),
        (replace(WAYS, hardware=0x7FF), 40, 0x1F),
        (Ways(0xFFFF, sparse=True), 50, 0xFF),
        (Ways(0xF, least=2), 51, 0),
    ],
)
def test_ways_are_a_run_at_the_end_that_devices_fill_least(
    rules: Ways, percent: int, mask: int
) -> None:
    kernel = Kernel({("L3", 1): rules.whole}, ways=rules)
    made = plan(kernel, replace(WANTED, l3_percent=percent), Record())
    assert made.record.ways.get(1, 0) == mask
    assert bool(made.problems) == (not mask)
    if mask:
        assert made.default == {("L3", 1): rules.whole & ~mask}


def test_the_ways_of_other_groups_are_not_taken_and_are_named_if_they_overlap() -> None:
    rt = Group("rt", CpuSet.parse("7"), {("L3", 1): 0xF})
    found = {("L3", 1): 0x7F0}
    made = plan(Kernel(found, (rt,), WAYS), WANTED, Record())
    assert made.record.ways == {1: 0x1F0}
    assert made.problems == ()
    low = replace(rt, values={("L3", 1): 0x3F})
    made = plan(Kernel(FOUND, (low,), WAYS), WANTED, Record())
    assert made.record.ways == {1: 0x7C0}
    everything = replace(rt, values={("L3", 1): 0x7FF})
    made = plan(Kernel(FOUND, (everything,), WAYS), WANTED, Record())
    assert made.problems == ("the resctrl group rt fills ways of exclusive CPUs in L3 1",)


def test_cpus_of_other_groups_stay_there() -> None:
    rt = Group("rt", CpuSet.parse("3,7"), {("L3", 1): 0x400})
    made = plan(replace(KERNEL, groups=(rt,)), WANTED, Record())
    assert made.cpus == CpuSet.parse("2")
    assert made.problems == ("CPUs 3 are in the resctrl group rt, and stay there",)


def test_code_and_data_are_divided_alike() -> None:
    found: dict[Key, int] = {("L3CODE", 1): 0x7FF, ("L3DATA", 1): 0x3FF}
    made = plan(Kernel(found, ways=WAYS), WANTED, Record())
    assert made.default == {("L3CODE", 1): 0x7E0, ("L3DATA", 1): 0x3E0}
    assert made.ours == {("L3CODE", 1): 0x1F, ("L3DATA", 1): 0x1F}


def test_bandwidth_is_limited_in_steps_and_never_widened_for_others() -> None:
    wanted = replace(WANTED, l3_percent=0, bandwidth=71, others_bandwidth=35)
    made = plan(KERNEL, wanted, Record())
    assert made.default == {("MB", 1): 40}
    assert made.ours == {("L3", 1): 0x7FF, ("MB", 1): 80}
    less = FOUND | {("MB", 1): 20}
    assert plan(replace(KERNEL, default=less), wanted, Record()).default == {("MB", 1): 20}
    assert plan(KERNEL, replace(wanted, others_bandwidth=1), Record()).default == {("MB", 1): 10}
    assert [Steps(10, 30).at_least(one) for one in (1, 31, 91, 100)] == [30, 60, 100, 100]


@pytest.mark.parametrize(
    ("kernel", "wanted", "said"),
    [
        (Kernel({}), WANTED, "cannot be divided here"),
        (replace(KERNEL, steps=None), replace(WANTED, l3_percent=0, bandwidth=50), "in percent"),
        (Kernel({("L3", 1): 0x1F}, ways=WAYS), WANTED, "too few ways to give 40 %"),
    ],
)
def test_what_the_machine_does_not_have_is_said(kernel: Kernel, wanted: Wanted, said: str) -> None:
    made = plan(kernel, wanted, Record())
    assert (made.ours, made.default) == (None, {})
    [problem] = made.problems
    assert said in problem


def test_what_the_machine_does_not_have_keeps_nothing_else_from_being_shared_out() -> None:
    wanted = replace(WANTED, bandwidth=50)
    made = plan(replace(KERNEL, steps=None), wanted, Record())
    assert made.ours == {("L3", 1): 0x1F}
    assert len(made.problems) == 1


DIVIDED = Record(
    {("L3", 1): Saved(0x7FF, frozenset({0x7E0})), ("MB", 1): Saved(100, frozenset({50}))},
    {1: 0x1F},
)
LIMITED = replace(WANTED, others_bandwidth=50)


@pytest.mark.parametrize(
    ("now", "percent", "wanted", "found"),
    [
        (0x7E0, 50, (0x7E0, 50), (0x7FF, 100)),
        (0x7FF, 100, (0x7E0, 50), (0x7FF, 100)),
        (0x3FF, 80, (0x7E0, 50), (0x7FF, 100)),
        (0x3E0, 30, (0x3E0, 30), (0x3E0, 30)),
    ],
    ids=["ours", "restored by others", "widened by others", "narrowed by others"],
)
def test_what_others_take_from_exclusive_cpus_is_undone_and_the_rest_is_theirs(
    now: int, percent: int, wanted: tuple[int, int], found: tuple[int, int]
) -> None:
    kernel = replace(KERNEL, default=FOUND | {("L3", 1): now, ("MB", 1): percent})
    made = plan(kernel, LIMITED, DIVIDED)
    assert made.default == {("L3", 1): wanted[0], ("MB", 1): wanted[1]}
    saved = made.record.values
    assert (saved["L3", 1].found, saved["MB", 1].found) == found
    assert made.record.ways == {1: 0x1F}


def test_values_that_are_ours_are_restored_and_no_others() -> None:
    ours = replace(KERNEL, default=FOUND | {("L3", 1): 0x7E0, ("MB", 1): 30})
    made = plan(ours, NOTHING, DIVIDED)
    assert made.default == {("L3", 1): 0x7FF}
    assert made.ours is None
    assert made.restored == DIVIDED.values.keys()


def test_a_cache_without_exclusive_cpus_is_restored() -> None:
    kernel = replace(KERNEL, default=FOUND | {("L3", 1): 0x7E0})
    record = replace(DIVIDED, values={("L3", 1): DIVIDED.values["L3", 1]})
    made = plan(kernel, replace(WANTED, caches=frozenset({0})), record)
    assert made.default == {("L3", 0): 0x7E0, ("L3", 1): 0x7FF}
    assert made.record.ways == {0: 0x1F}


def test_without_a_share_exclusive_cpus_have_the_ways_that_others_have_set() -> None:
    kernel = replace(KERNEL, default=FOUND | {("L3", 1): 0x1})
    made = plan(kernel, replace(WANTED, l3_percent=0, bandwidth=50), DIVIDED)
    assert made.ours == {("L3", 1): 0x1, ("MB", 1): 50}
    assert ("L3", 1) not in made.default


def test_another_share_is_taken_from_what_was_found() -> None:
    kernel = replace(
        KERNEL,
        default=FOUND | {("L3", 1): 0x7E0},
        groups=(Group(GROUP, CPUS, {("L3", 1): 0x1F}),),
    )
    made = plan(kernel, replace(WANTED, l3_percent=10), DIVIDED)
    assert made.default["L3", 1] == 0x7FC
    assert made.record.values["L3", 1] == Saved(0x7FF, frozenset({0x7E0, 0x7FC}))
    made = plan(kernel, replace(WANTED, l3_percent=0, bandwidth=50), DIVIDED)
    assert made.default["L3", 1] == 0x7FF
    assert made.ours == {("L3", 1): 0x7FF, ("MB", 1): 50}
