"""The time between two attempts grows up to a cap, with jitter."""

from numapin_daemon.flowcontrol.backoff import Backoff


def test_back_off_grows_to_its_cap_with_full_jitter() -> None:
    backoff = Backoff(base_seconds=1, cap_seconds=8)
    bounds = [1, 2, 4, 8, 8, 8]
    assert all(0 <= backoff.next_seconds() <= bound for bound in bounds)
    assert backoff.failures == len(bounds)
    assert backoff.next_seconds(retry_after_seconds=60) >= 60
    backoff.reset()
    assert backoff.next_seconds() <= 1


def test_back_off_accepts_any_number_of_failures() -> None:
    assert Backoff(failures=10**6).next_seconds() <= 30


def test_one_wait_can_be_limited_but_not_what_the_server_asked_for() -> None:
    backoff = Backoff(base_seconds=100.0)
    assert all(backoff.next_seconds(most_seconds=3.0) <= 3.0 for _ in range(50))
    assert 10.0 <= backoff.next_seconds(10.0, most_seconds=3.0) <= 13.0


def test_a_back_off_without_a_spread_doubles_exactly() -> None:
    backoff = Backoff(base_seconds=5.0, cap_seconds=30.0, spread=0.0)
    assert [backoff.next_seconds() for _ in range(4)] == [5.0, 10.0, 20.0, 30.0]
    backoff.reset()
    assert backoff.next_seconds() == 5.0
    near = Backoff(base_seconds=100.0, cap_seconds=100.0, spread=0.25)
    assert all(75.0 <= near.next_seconds() <= 100.0 for _ in range(100))
