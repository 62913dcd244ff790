from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.duration import (
    duration_nanoseconds,
    duration_seconds,
    epoch_seconds,
    is_duration,
    time_text,
)

FORMAT = "%Y-%m-%dT%H:%M:%SZ"


# What time.ParseDuration of Go 1.26 answers.
DURATIONS = {
    "0": 0,
    "+0": 0,
    "+5s": 5 * 10**9,
    "00s": 0,
    "1m30s": 90 * 10**9,
    "1.5h": 5400 * 10**9,
    ".5s": 5 * 10**8,
    "1.s": 10**9,
    "250ms": 250 * 10**6,
    "1us2ns": 1002,
    "1µs": 1000,
    "1μs": 1000,
    "0.3ns": 0,
    "0.0000000019s": 1,
    "1h1h": 7200 * 10**9,
    "1h30m15.5s": 5415500000000,
    "9999h1ns": 35996400000000001,
}


@pytest.mark.parametrize("text", DURATIONS)
def test_durations_are_those_of_go(text: str) -> None:
    assert is_duration(text)
    assert duration_nanoseconds(text) == DURATIONS[text]
    assert duration_seconds(text) == DURATIONS[text] / 10**9


@pytest.mark.parametrize(
    "text", ["", "5", "1", "+", "1d", "-1s", "1 s", "s", ".s", "1.2.3s", "1m-1s", "1s\n", "\u0661s"]
)
def test_what_go_refuses_is_no_duration_and_nothing_is_below_nothing(text: str) -> None:
    assert not is_duration(text)


@given(st.integers(-2_000_000_000, 200_000_000_000))
def test_times_are_those_of_the_standard_library(seconds: int) -> None:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert time_text(seconds) == at.strftime(FORMAT)
    assert epoch_seconds(at.strftime(FORMAT)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1970-01-01T00:00:00Z"), (0.001, "1970-01-01T00:00:01Z"), (1.0, "1970-01-01T00:00:01Z")],
)
def test_a_time_is_never_too_early(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_a_day_that_does_not_exist_is_a_time_too() -> None:
    assert epoch_seconds("2030-02-31T00:00:00Z") == epoch_seconds("2030-03-03T00:00:00Z")
    assert isinstance(epoch_seconds("0000-00-00T00:00:00Z"), int)
