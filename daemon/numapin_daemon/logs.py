"""Log lines: constant text with the data in fields, for people or as JSON."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal

STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; anything else was given as a field (`extra`)."""

CHATTY: Final = ("kopf", "kubernetes", "aiohttp.access")


def setup_logging(level: str, shape: Literal["text", "json"]) -> None:
    """Write lines of `level` and above to standard error.

    kopf tells each event it sees and each login; only its warnings are ours to show.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if shape == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level != "debug":
        for name in CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)


class TextLines(logging.Formatter):
    """`time LEVEL logger: text field=value ...`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback where there is one."""
        fields = "".join(f" {name}={_word(value)}" for name, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
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
        return json.dumps(line | _fields(record), default=str)


def _word(value: object) -> str:
    """A field's value as one word, in quotes where it is more than that."""
    text = str(value)
    plain = text.isprintable() and not set(text) & {" ", '"', "="}
    return text if text and plain else json.dumps(text, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    if record.name.startswith("kopf."):
        return {}  # it gives its whole settings along with each line
    return {name: value for name, value in vars(record).items() if name not in STANDARD}
