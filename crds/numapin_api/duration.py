"""Durations as people write them in a policy, such as 30s, and times. Does no I/O."""

from typing import Final

DURATION_PATTERN: Final = r"^(0|[1-9][0-9]{0,3})(s|m|h)$"

TIME_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
"""A time as Kubernetes writes it: RFC 3339, UTC, whole seconds (apimachinery `metav1.Time`)."""

MAX_SECONDS: Final = 9999 * 3600
"""The longest duration that a text can say."""

_FEBRUARY: Final = 2
_ERA_DAYS: Final = 146_097
_EPOCH_DAYS: Final = 719_468
"""The days of 400 years, and those from 1 March of year 0 to 1 January 1970."""

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def duration_seconds(text: str) -> int:
    """The seconds of a text that matches `DURATION_PATTERN`."""
    return int(text[:-1]) * _SECONDS[text[-1]]


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
