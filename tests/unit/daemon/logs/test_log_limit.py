"""Lines that others can cause: once for each subject, and few in all."""

from numapin_daemon.logs.log_limit import LEFT_OUT, REMEMBERED_SUBJECTS, LogLimit
from support.fakes.manual_clock import ManualClock


def test_a_subject_is_logged_once_and_another_one_too() -> None:
    limit = LogLimit(clock=ManualClock())
    admitted = [limit.admit("pod", problem) is not None for problem in "aaabba"]
    assert admitted == [True, False, False, True, False, False]


def test_many_subjects_are_logged_up_to_a_limit_and_the_rest_is_counted() -> None:
    clock = ManualClock()
    limit = LogLimit(in_all_at_once=3, in_all_per_second=0.5, clock=clock)
    assert [limit.admit(n) for n in range(10)] == [{}, {}, {}, *[None] * 7]
    clock.stand_still(2)
    assert limit.admit(9) == {LEFT_OUT: 7}, "what was left out is new when there is room"
    assert limit.admit(9) is None


def test_a_subject_that_goes_on_is_logged_at_a_pace() -> None:
    clock = ManualClock()
    limit = LogLimit(at_once=2, per_second=0.1, clock=clock)
    assert [limit.admit("node") for _ in range(5)] == [{}, {}, None, None, None]
    clock.stand_still(10)
    assert limit.admit("node") == {LEFT_OUT: 3}


def test_what_it_remembers_is_bounded() -> None:
    limit = LogLimit(in_all_at_once=2 * REMEMBERED_SUBJECTS, clock=ManualClock())
    for number in range(REMEMBERED_SUBJECTS + 10):
        limit.admit(number)
    assert limit.admit(REMEMBERED_SUBJECTS + 9) is None
    assert limit.admit(0) == {}, "the oldest was forgotten"
    assert len(limit) <= REMEMBERED_SUBJECTS
