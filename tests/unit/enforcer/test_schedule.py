"""When the next pass is due: after a resync, after failures, in a storm of events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_enforcer.schedule import BURST_SECONDS, CPU_SHARE, Schedule

PASS_SECONDS = 0.001
RESYNC_SECONDS, RETRY_SECONDS = 10.0, 0.1


def rest_seconds(schedule: Schedule, spent_seconds: float, now_seconds: float) -> float:
    """The rest after a pass that took so much CPU time."""
    schedule.note_work(spent_seconds, now_seconds)
    return schedule.rest_seconds(now_seconds)


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(RESYNC_SECONDS, RETRY_SECONDS)


def test_the_first_pass_reads_everything_and_then_one_each_resync(schedule: Schedule) -> None:
    assert schedule.resync_due(5)
    schedule.note_pass(5, resynced=True, complete=True)
    assert not schedule.resync_due(14.9)
    assert schedule.resync_due(15)


def test_an_event_does_not_put_the_next_resync_off(schedule: Schedule) -> None:
    schedule.note_pass(5, resynced=True, complete=True)
    schedule.note_pass(9, resynced=False, complete=True)
    assert schedule.wait_seconds(9) == 6
    assert schedule.wait_seconds(20) == 0


def test_a_failed_pass_is_repeated_soon_and_then_less_often(schedule: Schedule) -> None:
    waits = []
    for _ in range(12):
        schedule.note_pass(0, resynced=True, complete=False)
        waits.append(schedule.wait_seconds(0))
    assert waits[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert waits[-1] == RESYNC_SECONDS
    schedule.note_pass(0, resynced=False, complete=True)
    assert (schedule.failed_passes, schedule.wait_seconds(0)) == (0, RESYNC_SECONDS)


def test_after_a_tree_that_could_not_be_read_all_of_it_is_read(schedule: Schedule) -> None:
    schedule.note_pass(5, resynced=True, complete=True)
    schedule.note_unreadable()
    assert schedule.resync_due(5.1)
    assert (schedule.failed_passes, schedule.wait_seconds(5.1)) == (1, RETRY_SECONDS)


def test_passes_come_at_once_while_they_are_few(schedule: Schedule) -> None:
    assert all(rest_seconds(schedule, PASS_SECONDS, 5.0 + number) == 0 for number in range(10_000))


def test_a_burst_comes_at_once(schedule: Schedule) -> None:
    """A node that starts all its pods: hundreds of passes without a pause."""
    count = int(BURST_SECONDS / PASS_SECONDS)
    rests = [rest_seconds(schedule, PASS_SECONDS, 0.0) for _ in range(count)]
    assert max(rests[:-1]) == 0


def test_in_a_storm_a_pass_waits_for_a_few_passes_time(schedule: Schedule) -> None:
    now = 0.0
    for _ in range(5_000):
        rest = rest_seconds(schedule, PASS_SECONDS, now)
        now += max(rest, PASS_SECONDS)
    assert 0 < rest < 2 * PASS_SECONDS / CPU_SHARE


@given(st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, 1)), max_size=200))
def test_no_storm_takes_more_than_its_share(passes: list[tuple[float, float]]) -> None:
    """Each pass takes some CPU time, the rest is kept, and after it some time without events."""
    schedule, now, spent = Schedule(RESYNC_SECONDS, RETRY_SECONDS), 0.0, 0.0
    for cpu_seconds, quiet_seconds in passes:
        now += cpu_seconds
        spent += cpu_seconds
        now += rest_seconds(schedule, cpu_seconds, now)
        assert spent <= BURST_SECONDS + CPU_SHARE * now + 1e-6
        now += quiet_seconds
