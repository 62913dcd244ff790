"""What ran between two pages, and pages that are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_cli.noise.as_json import to_json
from numapin_cli.noise.measured import Measured, measure
from numapin_cli.noise.page import MalformedPageError, Page
from support.values.telemetry.cpu_pages import container, cpu_page, interrupt, task


def measured(*pages: dict[str, Any], pod_uid: str = "") -> Measured:
    return measure("worker-1", [Page.decode(one) for one in pages], pod_uid)


def only(found: Measured) -> Any:
    (one,) = found.groups
    return one


def test_nothing_ran() -> None:
    found = measured(cpu_page(0.0), cpu_page(10.0))
    assert (found.seconds, found.is_disturbed) == (10.0, False)
    assert only(found).foreign_seconds == 0
    assert [one.tasks for one in only(found).cpus.values()] == [{}, {}]


def test_others_had_what_the_cpus_had_more_than_the_container() -> None:
    before = cpu_page(0.0, containers=[container(ran=1.0, threads=[[7, 0.0, 10, 0]])])
    after = cpu_page(
        10.0,
        containers=[container(ran=5.0, threads=[[7, 0.25, 30, 2], [8, 0.5, 5, 1]])],
        ran={4: 3.0, 5: 2.0},
        slices={4: 20, 5: 9},
    )
    one = only(measured(before, after))
    assert one.foreign_seconds == pytest.approx(1.0)
    assert one.foreign_switches == 29 - 25
    assert (one.waited_seconds, one.migrations) == (0.75, 3)
    assert one.cpus[4].switches.known == 20


def test_a_task_counts_where_it_was_both_times() -> None:
    pages = [
        cpu_page(0.0, tasks=[task(11, "kworker", 4, 1.0, 5, kernel=True), task(12, "cron", 5)]),
        cpu_page(
            10.0,
            tasks=[
                task(11, "kworker", 4, 1.5, 9, kernel=True),
                task(12, "cron", 4, 3.0, 2),  # it was on CPU 5: how much it had here is not known
                task(13, "new", 5, 99.0, 2),
            ],
        ),
    ]
    found = measured(*pages)
    four, five = only(found).cpus.values()
    assert {one.name: (one.seconds, one.switches) for one in four.tasks.values()} == {
        "kworker": (0.5, 4),
        "cron": (0.0, 0),
    }
    assert {one.name: one.seconds for one in five.tasks.values()} == {"new": 0.0}
    assert found.is_disturbed


def test_a_used_number_is_another_task() -> None:
    before = cpu_page(0.0, tasks=[task(11, "old", 4, 9.0, 50, start=1)])
    after = cpu_page(10.0, tasks=[task(11, "young", 4, 9.5, 60, start=2)])
    (found,) = only(measured(before, after)).cpus[4].tasks.values()
    assert (found.name, found.seconds) == ("young", 0.0)


def test_a_task_that_did_not_run_is_not_named() -> None:
    pages = [cpu_page(at, tasks=[task(11, "asleep", 4, 9.0, 50)]) for at in (0.0, 10.0)]
    assert only(measured(*pages)).cpus[4].tasks == {}


@pytest.mark.parametrize(
    ("number", "came", "is_disturbed"), [("24", 11, True), ("24", 9, False), ("LOC", 5000, False)]
)
def test_interrupts_of_devices_disturb_and_the_timer_is_shown(
    number: str, came: int, is_disturbed: bool
) -> None:
    before = cpu_page(0.0, interrupts=[interrupt(number, "it", {4: 100})])
    after = cpu_page(10.0, interrupts=[interrupt(number, "it", {4: 100 + came, 9: 7})])
    found = measured(before, after)
    assert dict(only(found).cpus[4].interrupts) == {(number, "it"): came}
    assert found.is_disturbed is is_disturbed


def test_containers_that_came_or_got_other_cpus_are_left_out_and_named() -> None:
    before = cpu_page(0.0, containers=[container(cpus="4-5"), container(cpus="6", uid="2")])
    after = cpu_page(10.0, containers=[container(cpus="4"), container(cpus="6", uid="2")])
    found = measured(before, after)
    assert [str(one.group.cpus) for one in found.groups] == ["6"]
    assert any("left out" in note for note in found.notes)


def test_containers_of_a_pod_with_the_same_cpus_count_together() -> None:
    pair = [container(name="a", ran=1.0), container(name="b", ran=0.5)]
    later = [container(name="a", ran=2.0), container(name="b", ran=1.0)]
    after = cpu_page(10.0, containers=later, ran={4: 1.5})
    assert only(measured(cpu_page(0.0, containers=pair), after)).foreign_seconds == 0


def test_only_the_pod_that_was_named() -> None:
    pages = [
        cpu_page(at, containers=[container(cpus="4"), container(cpus="5", uid="2")])
        for at in (0.0, 10.0)
    ]
    assert only(measured(*pages, pod_uid="2")).group.pod_uid == "2"
    assert measured(*pages, pod_uid="3").groups == ()


def test_what_is_not_known_is_null_and_said() -> None:
    gone = [container(ran=None, complete=False)]
    pages = [
        cpu_page(at, containers=gone, slices={4: None, 5: None}, interrupts=[], complete=False)
        for at in (0.0, 10.0)
    ]
    found = measured(*pages)
    (shown,) = to_json(found)["containers"]
    assert (shown["foreignSeconds"], shown["foreignSwitches"]) == (None, None)
    assert [cpu["switches"] for cpu in shown["perCPU"]] == [None, None]
    assert len(found.notes) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"takenSeconds": "soon"},
        cpu_page(-1.0),
        cpu_page(0.0, containers=[container(cpus="5-4")]),
        cpu_page(0.0, tasks=[task(-1, "x", 4)]),
    ],
)
def test_a_wrong_page_is_refused_with_its_field(wrong: dict[str, Any]) -> None:
    with pytest.raises(MalformedPageError, match=r"\w+: "):
        Page.decode(wrong)


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.integers(4, 5), st.integers(0, 9), st.integers(0, 9)),
        max_size=12,
    )
)
def test_no_order_of_counters_gives_less_than_nothing(rows: list[tuple[int, ...]]) -> None:
    pages = [
        cpu_page(
            float(at),
            containers=[container(ran=ran, threads=[[id_, float(ran), slices, ran]])],
            tasks=[task(id_, "x", cpu, float(ran), slices)],
            ran={4: float(slices)},
        )
        for at, (id_, cpu, ran, slices) in enumerate([(1, 4, 0, 0), *rows, (1, 5, 9, 9)])
    ]
    one = only(measured(*pages))
    assert one.foreign_seconds >= 0
    assert one.foreign_switches >= 0
    assert one.waited_seconds >= 0
    assert all(each.task_seconds >= 0 for each in one.cpus.values())
