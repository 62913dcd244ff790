"""A token bucket lets a burst pass, and then what comes back."""

from hypothesis import given
from hypothesis import strategies as st

from numapin_daemon.flowcontrol.rate_limit import TokenBucket


def test_a_burst_passes_and_then_what_comes_back() -> None:
    bucket = TokenBucket(capacity=3, refill_per_second=0.1)
    assert [bucket.take(1, 50) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(1, 59)
    assert bucket.take(1, 60)
    assert not bucket.take(1, 60)


def test_it_holds_no_more_than_its_capacity() -> None:
    bucket = TokenBucket(capacity=2, refill_per_second=1)
    assert [bucket.take(1, 0), bucket.take(1, 0)] == [True, True]
    assert [bucket.take(1, 1000) for _ in range(3)] == [True, True, False]


def test_what_is_spent_too_much_takes_time_to_come_back() -> None:
    bucket = TokenBucket(capacity=0.5, refill_per_second=0.25)
    assert bucket.spend(0.5, 10) == 0
    assert bucket.spend(0.25, 10) == 1
    assert bucket.spend(0, 10.5) == 0.5
    assert bucket.spend(0, 11) == 0


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1),
    st.floats(0.1, 10),
    st.floats(0.1, 10),
)
def test_the_long_run_is_limited_whatever_happens(
    passes: list[tuple[float, float]], capacity: float, rate: float
) -> None:
    """A caller that waits as long as the bucket says spends no more than burst and rate allow."""
    bucket, now, spent = TokenBucket(capacity, rate), 0.0, 0.0
    for pause, cost in passes:
        now += pause
        now += bucket.spend(cost, now)
        spent += cost
        assert spent <= capacity + rate * now + 1e-6
