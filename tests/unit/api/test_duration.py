from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.duration import epoch_seconds, time_text

FORMAT = "%Y-%m-%dT%H:%M:%SZ"


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
