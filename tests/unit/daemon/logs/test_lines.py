"""Log lines for people and for machines."""

import json
import logging
from collections.abc import Iterator

import pytest

from numapin_daemon.logs.lines import JsonLines, TextLines, setup_logging
from numapin_daemon.telemetry.span import trace_id_text
from numapin_daemon.telemetry.traced_logs import traced_logs


def record(name: str = "numapin_daemon", **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": name, "levelname": "INFO", "levelno": 20, "msg": "wrote", "created": 0.0} | fields
    )


def test_text_lines_hold_the_fields() -> None:
    line = TextLines().format(record(node="node-1", error='two words, "quoted"\nand a line'))
    assert line == (
        "1970-01-01T00:00:00.000+00:00 INFO numapin_daemon: wrote node=node-1 "
        'error="two words, \\"quoted\\"\\nand a line"'
    )


def test_json_lines_hold_the_fields() -> None:
    assert json.loads(JsonLines().format(record(node="node-1", count=3))) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "numapin_daemon",
        "text": "wrote",
        "node": "node-1",
        "count": 3,
    }


@pytest.mark.parametrize("name", ["library", "library.part"])
def test_a_chatty_loggers_fields_are_left_out(name: str) -> None:
    lines = TextLines(chatty=("library",))
    assert lines.format(record(name, settings="long")).endswith(": wrote")
    assert lines.format(record("library2", settings="long")).endswith(": wrote settings=long")


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Logging belongs to the process; what a test sets up ends with it."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("library").setLevel(logging.NOTSET)


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize(("level", "shown"), [("info", False), ("debug", True)])
def test_a_chatty_logger_is_quiet_unless_debugging(
    level: str, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    setup_logging(level, "text", chatty=("library",))
    logging.getLogger("library").warning("a warning")
    logging.getLogger("library").info("an event")
    written = capsys.readouterr().err
    assert "WARNING library: a warning\n" in written
    assert ("an event" in written) == shown


@pytest.mark.usefixtures("logging_restored")
def test_a_line_about_a_pod_has_its_trace_id_while_there_are_traces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logging("info", "json")
    logger = logging.getLogger("numapin_daemon")
    with traced_logs():
        logger.info("placed", extra={"pod_uid": "1"})
        logger.info("no pod")
    logger.info("placed", extra={"pod_uid": "1"})
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line.get("trace_id") for line in lines] == [trace_id_text("1"), None, None]


def test_no_field_of_a_line_has_what_a_terminal_could_obey() -> None:
    assert TextLines().format(record(cgroup="a\x1b[2J\x9b1m\u202e")).isprintable()
