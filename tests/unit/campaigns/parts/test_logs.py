"""What is read in the logs of operator, enforcer and standby."""

import logging
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from numapin_campaigns.frame.downtime import Downtime
from numapin_campaigns.parts.logs import (
    Line,
    Log,
    complaints,
    fenced,
    hangs_noticed,
    taken,
    warnings,
)
from numapin_daemon.logs.lines import TextLines
from numapin_enforcer.assignment import acceptance
from numapin_enforcer.standby import fencing


def logged(logger: logging.Logger, text: str, **fields: object) -> Line:
    """A line as a daemon writes it to its log file."""
    record = logger.makeRecord(logger.name, logging.INFO, "", 0, text, (), None, extra=fields)
    return Line(1.0, "INFO", TextLines().format(record))


def test_the_enforcers_own_text_gives_the_accepted_generation() -> None:
    assert taken([logged(acceptance.LOG, acceptance.ACCEPTED, generation=7)]) == [(1.0, 7)]


def test_only_the_standbys_fencing_is_counted() -> None:
    written = {"cgroup": "kubepods/pod1", "cpus": "0-1"}
    lines = [
        logged(fencing.LOG, fencing.FENCED, **written),
        logged(fencing.LOG, fencing.STANDING_BY),
        logged(acceptance.LOG, fencing.FENCED, **written),
    ]
    assert fenced(lines) == 1


def test_the_standbys_own_text_gives_when_it_noticed_that_the_enforcer_hangs() -> None:
    lines = [logged(fencing.LOG, text) for text in (fencing.STANDING_BY, fencing.ENFORCER_HANGS)]
    assert hangs_noticed(lines) == [1.0]


def test_a_log_is_read_from_its_former_end(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("2026-11-22T04:00:00.000+00:00 ERROR old: was there before\n")
    log = Log(file)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    with file.open("a") as added:
        added.write(f"{now} INFO numapin_enforcer.agent: accepted an assignment generation=7\n")
        added.write(f'{now} WARNING a.b: the cat is away error="no cat" again=1\n')
        added.write("Traceback (most recent call last):\n  File x\nValueError: y\n")
    lines = list(log.lines())
    ((at, generation),) = taken(lines)
    assert generation == 7
    assert abs(at - time.monotonic()) < 60
    assert warnings(lines) == [("a.b: the cat is away", 1)]
    assert complaints(lines, []) == ["Traceback (most recent call last):"]


@pytest.mark.parametrize(
    ("line", "complained"),
    [
        pytest.param(Line(20.0, "ERROR", "no answer"), False, id="while-the-api-server-is-away"),
        pytest.param(Line(5.0, "ERROR", "no answer"), True, id="before"),
        pytest.param(Line(200.0, "ERROR", "no answer"), True, id="long-after"),
        pytest.param(
            Line(20.0, "ERROR", "Traceback (most recent call last):"), True, id="a-trace-never"
        ),
        pytest.param(Line(5.0, "WARNING", "no answer"), False, id="a-warning-is-none"),
    ],
)
def test_only_an_api_server_that_is_down_explains_an_error(line: Line, complained: bool) -> None:
    away = [Downtime("kube-apiserver", 10.0, 30.0), Downtime("enforcer", 0.0, 300.0)]
    assert bool(complaints([line], away)) == complained
