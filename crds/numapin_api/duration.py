"""Durations as people write them in a policy, such as 30s. Does no I/O."""

from typing import Final

DURATION_PATTERN: Final = r"^(0|[1-9][0-9]{0,3})(s|m|h)$"

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def duration_seconds(text: str) -> int:
    """The seconds of a text that matches `DURATION_PATTERN`."""
    return int(text[:-1]) * _SECONDS[text[-1]]
