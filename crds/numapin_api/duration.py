"""Durations as people write them in a policy, such as 30s. Does no I/O."""

from typing import Final

DURATION_PATTERN: Final = r"^(0|[1-9][0-9]{0,3})(s|m|h)$"

TIME_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
"""A time as Kubernetes writes it: RFC 3339, UTC, whole seconds (apimachinery `metav1.Time`)."""

MAX_SECONDS: Final = 9999 * 3600
"""The longest duration that a text can say."""

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def duration_seconds(text: str) -> int:
    """The seconds of a text that matches `DURATION_PATTERN`."""
    return int(text[:-1]) * _SECONDS[text[-1]]
