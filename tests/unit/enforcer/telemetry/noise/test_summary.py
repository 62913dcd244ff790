"""What is named in the status, and when no more."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import Disturbance
from numapin_api.status.disturbances import MAX_DISTURBANCE_NAME, MAX_DISTURBANCES
from numapin_enforcer.telemetry.noise.look import Look
from numapin_enforcer.telemetry.noise.stat_text import TaskStat
from numapin_enforcer.telemetry.noise.summary import (
    LOOKS_TO_FORGET,
    LOOKS_TO_NAME,
    MOST_KNOWN,
    MOST_NAMED,
    Summary,
)
from numapin_enforcer.telemetry.noise.tasks import Task, Tasks
from numapin_enforcer.telemetry.samples.interrupts import MOST_NAME
from numapin_enforcer.telemetry.samples.kernel_counters import ThreadTimes
from support.values.telemetry.kernel_rows import interrupt

MINUTE = 60.0


def task(name: str, cpu: int, ran: float, *, id_: int = 7, kernel: bool = False) -> Task:
    return Task(id_, TaskStat(name, kernel, 1, cpu), ThreadTimes(ran, 0.0, 1))


def look(
    *tasks: Task, interrupts: Mapping[str, Mapping[int, int]] | None = None, cpus: str = "4-5"
) -> Look:
    rows = (interrupt("24", name, counts) for name, counts in (interrupts or {}).items())
    return Look((), CpuSet.parse(cpus), Tasks(tasks, complete=True), tuple(rows))


def named(summary: Summary) -> list[tuple[str, str, str]]:
    return [(one.kind, one.name, str(one.cpus)) for one in summary.found]


def test_a_task_is_named_once_it_used_a_cpu_in_two_minutes_in_a_row() -> None:
    summary, seen = Summary(), []
    for minute in range(LOOKS_TO_NAME + 1):
        summary.note(look(task("cron", 4, float(minute))), MINUTE)
        seen.append(named(summary))
    assert seen == [*[[]] * LOOKS_TO_NAME, [("Task", "cron", "4")]]


def test_it_is_forgotten_after_some_minutes_without() -> None:
    summary, seen = Summary(), []
    for minute in range(LOOKS_TO_NAME + 1):
        summary.note(look(task("cron", 4, float(minute))), MINUTE)
    for _ in range(LOOKS_TO_FORGET):
        summary.note(look(), MINUTE)
        seen.append(len(summary.found))
    assert seen == [*[1] * (LOOKS_TO_FORGET - 1), 0]


def test_one_that_comes_and_goes_every_other_minute_changes_nothing() -> None:
    summary = Summary()
    for minute in range(20):
        summary.note(look(task("cron", 4, float(minute // 2))), MINUTE)
        assert summary.found == ()


def test_a_task_that_moved_or_hardly_ran_disturbs_no_cpu() -> None:
    summary = Summary()
    for minute in range(6):
        wanders, idle = task("a", 4 + minute % 2, float(minute)), task("b", 4, minute / 100, id_=8)
        summary.note(look(wanders, idle), MINUTE)
    assert summary.found == ()


def test_kernel_threads_of_one_kind_are_one_row() -> None:
    summary = Summary()
    for minute in range(4):
        rows = [
            task(f"kworker/{cpu}:1", cpu, float(minute), id_=cpu, kernel=True) for cpu in (4, 5)
        ]
        summary.note(look(*rows), MINUTE)
    assert named(summary) == [("KernelThread", "kworker", "4-5")]


def test_interrupts_that_come_more_than_once_a_second() -> None:
    summary = Summary()
    for minute in range(4):
        rows = {"eth0": {4: 61 * minute, 5: 60 * minute}, "new": {5: 0}}
        summary.note(look(interrupts=rows), MINUTE)
    assert named(summary) == [("Interrupt", "eth0", "4")]


def test_what_came_to_a_cpu_before_it_was_exclusive_does_not_count() -> None:
    summary = Summary()
    for cpus in ("4", "4-5", "4-5", "4-5"):
        summary.note(look(interrupts={"eth0": {5: 10**6}}, cpus=cpus), MINUTE)
    assert summary.found == ()


def test_a_cpu_that_is_exclusive_no_more_leaves_the_row() -> None:
    summary = Summary()
    for minute in range(4):
        summary.note(look(interrupts={"eth0": {4: 99 * minute, 5: 99 * minute}}), MINUTE)
    summary.note(look(interrupts={"eth0": {4: 999}}, cpus="4"), MINUTE)
    assert named(summary) == [("Interrupt", "eth0", "4")]


def test_a_flood_of_names_is_bounded() -> None:
    summary = Summary()
    for minute in range(4):
        rows = [task(f"t{n}", 4, float(minute), id_=n) for n in range(2 * MOST_KNOWN)]
        summary.note(look(*rows), MINUTE)
    assert len(summary.found) == MOST_NAMED == MAX_DISTURBANCES
    assert MOST_NAME == MAX_DISTURBANCE_NAME


@given(
    st.lists(
        st.tuples(st.integers(4, 6), st.integers(0, 3), st.integers(0, 200), st.floats(0, 100)),
        max_size=20,
    )
)
def test_whatever_is_seen_the_rows_are_those_of_exclusive_cpus(
    rows: list[tuple[int, int, int, float]],
) -> None:
    summary = Summary()
    for cpu, id_, came, elapsed in rows:
        cpus = f"4-{cpu}"
        seen = look(task("x", cpu, float(came), id_=id_), interrupts={"i": {cpu: came}}, cpus=cpus)
        summary.note(seen, elapsed)
        assert all(one.cpus and one.cpus <= CpuSet.parse(cpus) for one in summary.found)
        assert all(isinstance(one, Disturbance) for one in summary.found)
