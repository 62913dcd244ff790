"""Log lines in both forms."""

import json
import logging
from collections.abc import Iterator

import pytest

from numapin_api.cpuset import CpuSet
from numapin_enforcer.logs import configure_logs


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_json_lines_carry_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    logging.getLogger("x").info("cpuset repaired", extra={"found": CpuSet.parse("0-3")})
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"], line["found"]) == ("INFO", "cpuset repaired", "0-3")
    assert line["time"].endswith("Z")


def test_json_lines_carry_the_exception(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    try:
        int("boom")
    except ValueError:
        logging.getLogger("x").exception("it failed")
    line = json.loads(capsys.readouterr().err)
    assert "ValueError: invalid literal" in line["exception"]


def test_text_lines_quote_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("text")
    logging.getLogger("x").warning("not ready", extra={"what": "runtime socket"})
    assert capsys.readouterr().err.rstrip().endswith("WARNING not ready what='runtime socket'")
