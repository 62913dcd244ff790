from hypothesis import given
from hypothesis import strategies as st

from numapin_enforcer.pace import BURST_SECONDS, SHARE, Pace

PASS_SECONDS = 0.001


def test_passes_come_at_once_while_they_are_few() -> None:
    pace = Pace()
    assert all(pace.rest_seconds(PASS_SECONDS, 5.0 + number) == 0 for number in range(10_000))


def test_a_burst_comes_at_once() -> None:
    """A node that starts all its pods: hundreds of passes without a pause."""
    pace, count = Pace(), int(BURST_SECONDS / PASS_SECONDS)
    rests = [pace.rest_seconds(PASS_SECONDS, 0.0) for _ in range(count)]
    assert max(rests[:-1]) == 0


def test_in_a_storm_a_pass_waits_for_a_few_passes_time() -> None:
    pace, now = Pace(), 0.0
    for _ in range(5_000):
        rest = pace.rest_seconds(PASS_SECONDS, now)
        now += max(rest, PASS_SECONDS)
    assert 0 < rest < 2 * PASS_SECONDS / SHARE


@given(st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, 1)), max_size=200))
def test_no_storm_takes_more_than_its_share(passes: list[tuple[float, float]]) -> None:
    """Each pass takes some CPU time, the rest is kept, and after it some time without events."""
    pace, now, spent = Pace(), 0.0, 0.0
    for cpu_seconds, quiet_seconds in passes:
        now += cpu_seconds
        spent += cpu_seconds
        now += pace.rest_seconds(cpu_seconds, now)
        assert spent <= BURST_SECONDS + SHARE * now + 1e-6
        now += quiet_seconds
