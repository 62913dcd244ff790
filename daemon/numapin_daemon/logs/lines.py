"""Log lines: constant text with data in fields, as plain text or as JSON."""

import json
import logging
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final, Literal

STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes of every record; any other one is a field (`extra`)."""

POD_UID: Final = "pod_uid"
"""The field of a line about one pod; with traces such a line has the pod's `trace_id` too."""


def setup_logging(
    level: str, shape: Literal["text", "json"], *, chatty: Collection[str] = ()
) -> None:
    """Write lines of `level` and above to standard error.

    Args:
        level: debug, info, warning or error.
        shape: plain text or JSON.
        chatty: names of loggers that show only warnings and errors, unless `level` is debug.
            Their fields are never shown.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(chatty) if shape == "json" else TextLines(chatty))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level != "debug":
        for name in chatty:
            logging.getLogger(name).setLevel(logging.WARNING)


class _Lines(logging.Formatter):
    """One line for each record."""

    def __init__(self, chatty: Collection[str] = ()) -> None:
        """Args: `chatty` are the loggers whose fields are left out, with their descendants."""
        super().__init__()
        self._chatty = frozenset(chatty)
        self._below = tuple(f"{name}." for name in chatty)

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        if record.name in self._chatty or record.name.startswith(self._below):
            return {}
        return {name: value for name, value in vars(record).items() if name not in STANDARD}


class TextLines(_Lines):
    """`time LEVEL logger: text field=value ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback where there is one."""
        fields = "".join(f" {name}={_word(value)}" for name, value in self._fields(record).items())
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(_Lines):
    """One JSON object on each line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level, logger, text and fields."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line | self._fields(record), default=str)


def _word(value: object) -> str:
    """A field's value as one word, in quotes if needed."""
    text = str(value)
    plain = text.isprintable() and not set(text) & {" ", '"', "="}
    return text if text and plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
