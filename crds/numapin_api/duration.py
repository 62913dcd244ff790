"""Durations as people write them in a policy, such as 30s or 1h30m, and times. Does no I/O."""

import re
from typing import Final

_NUMBER: Final = "([0-9]+([.][0-9]*)?|[.][0-9]+)"
_UNIT: Final = "(ns|us|µs|μs|ms|s|m|h)"
DURATION_PATTERN: Final = f"^[+]?(0|({_NUMBER}{_UNIT})+)$"
"""A duration of no less than nothing. Source: Go, time.ParseDuration, as of metav1.Duration.

It has no backslash, which CEL would take for its own. The two letters before the s of microseconds
look alike: the micro sign, and the Greek letter mu.
"""

TIME_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
"""A time as Kubernetes writes it: RFC 3339, UTC, whole seconds (apimachinery `metav1.Time`)."""

MAX_DURATION: Final = "9999h"
MAX_SECONDS: Final = 9999 * 3600
"""The longest duration of a policy: `MAX_DURATION`."""

_FEBRUARY: Final = 2
_ERA_DAYS: Final = 146_097
_EPOCH_DAYS: Final = 719_468
"""The days of 400 years, and those from 1 March of year 0 to 1 January 1970."""

_PART: Final = re.compile(f"{_NUMBER}{_UNIT}")
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


def duration_seconds(text: str) -> float:
    """The seconds of a text that matches `DURATION_PATTERN`."""
    return duration_nanoseconds(text) / 10**9


def duration_nanoseconds(text: str) -> int:
    """The nanoseconds of a text that matches `DURATION_PATTERN`; a part of one is dropped."""
    return sum(_nanoseconds(one[1], one[3]) for one in _PART.finditer(text))


def _nanoseconds(number: str, unit: str) -> int:
    whole, _, fraction = number.partition(".")
    of_unit = _NANOSECONDS[unit]
    return int(whole or 0) * of_unit + int(fraction or 0) * of_unit // int(10 ** len(fraction))


def is_duration(text: str) -> bool:
    """Whether a text matches `DURATION_PATTERN`."""
    return re.fullmatch(DURATION_PATTERN, text) is not None


def epoch_seconds(text: str) -> int:
    """The seconds since 1970 of a time that matches `TIME_PATTERN`, in the proleptic calendar.

    A day or month that does not exist is counted on from the last one that does. Source: Howard
    Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
    """
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hours, minutes, seconds = int(text[11:13]), int(text[14:16]), int(text[17:19])
    year -= month <= _FEBRUARY
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * _ERA_DAYS + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH_DAYS
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def time_text(seconds: float) -> str:
    """A time in seconds since 1970 as text, rounded up to whole seconds.

    Source: as for `epoch_seconds`, civil_from_days.
    """
    days, rest = divmod(-int(-seconds // 1), 86_400)
    era, of_era = divmod(days + _EPOCH_DAYS, _ERA_DAYS)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month <= _FEBRUARY)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"
