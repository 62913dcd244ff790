"""The options of every program about its log lines. Does no I/O."""

from typing import Final

from numapin_daemon.options import Option, one_of

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")

LOG_OPTIONS: Final = (
    Option(
        "--log-level",
        "info",
        "the lowest level of log lines to print",
        type=one_of(LEVELS),
        metavar="|".join(LEVELS),
    ),
    Option(
        "--log-format",
        "text",
        "log lines for people or for machines",
        type=one_of(FORMATS),
        metavar="|".join(FORMATS),
    ),
)
