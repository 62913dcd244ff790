"""A program that keeps changing the same cgroup is named, with how often."""

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.events.other_writers import (
    MOST_REMEMBERED,
    OFTEN,
    RUN_SECONDS,
    OtherWriters,
)


def drift(path: str) -> Drift:
    mems = MemSet((0,))
    return Drift(path, (CpuSet((0,)), mems), (CpuSet((1,)), mems))


def changed(writers: OtherWriters, times: int, every_seconds: float, path: str = "p") -> list[str]:
    notes = [writers.note(drift(path), number * every_seconds) for number in range(times)]
    return [note for note in notes if note]


def test_few_changes_are_no_other_writer() -> None:
    writers = OtherWriters()
    assert changed(writers, OFTEN - 1, 1.0) == []
    assert writers.describe(OFTEN) == ""


def test_changes_that_go_on_are_named_with_how_often() -> None:
    writers = OtherWriters()
    (note,) = changed(writers, OFTEN, 2.0)
    assert note.startswith(
        "another program writes to the same cgroup: cgroup p was changed 10 times in 18 s, "
        "last: cgroup p had cpus 0 instead of 1; reverted. Find it"
    )
    assert writers.describe(20.0) == (
        "another program writes to cgroups: cgroup p was changed 10 times in 18 s"
    )


def test_a_flood_gets_an_event_each_time_that_it_has_doubled() -> None:
    notes = changed(OtherWriters(), 85, 0.01)
    assert [note.split(" changed ")[1].split()[0] for note in notes] == ["10", "20", "40", "80"]


def test_changes_far_apart_do_not_add_up() -> None:
    writers = OtherWriters()
    assert changed(writers, 3 * OFTEN, RUN_SECONDS) == []
    assert writers.describe(0) == ""


def test_a_writer_that_has_stopped_is_no_longer_named() -> None:
    writers = OtherWriters()
    changed(writers, OFTEN, 1.0)
    assert writers.describe(OFTEN - 1 + RUN_SECONDS - 0.1)
    assert writers.describe(OFTEN - 1 + RUN_SECONDS) == ""


def test_the_most_often_changed_come_first_and_the_others_are_counted() -> None:
    writers = OtherWriters()
    for path, times in (("a", 10), ("b", 12), ("c", 11), ("d", 10), ("e", 10)):
        changed(writers, times, 0.1, path)
    described = writers.describe(2.0)
    assert described.index("cgroup b") < described.index("cgroup c") < described.index("cgroup a")
    assert described.endswith(" and 2 more")


def test_cgroups_that_come_and_go_are_forgotten() -> None:
    writers = OtherWriters()
    changed(writers, OFTEN, 0.1, "first")
    for number in range(MOST_REMEMBERED):
        writers.note(drift(f"c{number}"), 2.0)
    assert writers.describe(2.0) == ""
