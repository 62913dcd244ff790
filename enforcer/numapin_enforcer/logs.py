"""Log lines: constant text, data in fields, as text for people or as JSON for machines."""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final, Literal

_OWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def configure_logs(form: Literal["text", "json"]) -> None:
    """Send INFO and above to stderr in the wanted form."""
    output = logging.StreamHandler()
    output.setFormatter(_JsonLines() if form == "json" else _TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[output], force=True)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in record.__dict__.items() if name not in _OWN}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={str(value)!r}" for name, value in _fields(record).items())
        line = f"{_time(record)} {record.levelname} {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _time(record), "level": record.levelname, "message": record.getMessage()}
        line |= {name: str(value) for name, value in _fields(record).items()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)
