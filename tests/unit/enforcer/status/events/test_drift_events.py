"""Which external cpuset changes get an Event."""

from numapin_api.cpuset import CpuSet, MemSet
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.status.events.drift_events import (
    BURST,
    MOST_REMEMBERED,
    QUIET_SECONDS,
    REFILL_SECONDS,
    DriftEvents,
)

LATE = 1_000_000.0
"""Clocks begin anywhere."""


def _drift(path: str) -> Drift:
    mems = MemSet((0,))
    return Drift(path, (CpuSet((0,)), mems), (CpuSet((1,)), mems))


def test_each_cgroups_first_drift_gets_an_event_and_then_few_do() -> None:
    events = DriftEvents()
    assert events.note(_drift("a"), 0) == "cgroup a had cpus 0 instead of 1; reverted"
    assert events.note(_drift("a"), 1) == ""
    assert events.note(_drift("a"), 2) == ""
    assert events.note(_drift("b"), 2)
    note = events.note(_drift("a"), QUIET_SECONDS)
    assert note.endswith("; 2 more times since the last Event")


def test_a_flood_of_drifts_gets_few_events() -> None:
    events = DriftEvents()
    posted = [events.note(_drift(f"c{number}"), 0) for number in range(BURST + 5)]
    assert [bool(one) for one in posted] == [True] * BURST + [False] * 5
    assert events.note(_drift("late"), REFILL_SECONDS)


def test_cgroups_with_old_events_are_forgotten() -> None:
    events = DriftEvents()
    for number in range(5000):
        events.note(_drift(f"c{number}"), float(number))
    assert len(events._posted_at) + len(events._suppressed) <= MOST_REMEMBERED + 1
    assert events.note(_drift("c4999"), 5000.0) == ""


def test_after_the_quiet_time_a_cgroup_gets_another_event_and_not_before() -> None:
    events = DriftEvents()
    assert events.note(_drift("a"), LATE)
    assert events.note(_drift("a"), LATE + QUIET_SECONDS - 1) == ""
    note = events.note(_drift("a"), LATE + QUIET_SECONDS)
    assert note == ("cgroup a had cpus 0 instead of 1; reverted; 1 more times since the last Event")
    assert events.note(_drift("a"), LATE + 2 * QUIET_SECONDS).endswith("; reverted")


def test_the_event_budget_comes_back_slowly_and_never_more_than_a_burst() -> None:
    events = DriftEvents()

    def posted(count: int, at: float) -> int:
        return sum(bool(events.note(_drift(f"{at} {one}"), at)) for one in range(count))

    assert posted(BURST + 5, LATE) == BURST
    assert posted(5, LATE + REFILL_SECONDS * 0.9) == 0
    assert posted(5, LATE + REFILL_SECONDS * 3) == 3
    assert posted(BURST + 5, LATE + 1000 * REFILL_SECONDS) == BURST


def test_suppressed_drifts_are_forgotten_as_well() -> None:
    events = DriftEvents()
    for number in range(MOST_REMEMBERED + BURST + 5):
        events.note(_drift(f"c{number}"), LATE)
    assert len(events._posted_at) == BURST
    assert len(events._suppressed) <= MOST_REMEMBERED
    assert events.note(_drift("c0"), LATE + 1) == ""
