"""Writes in the log: all of a quiet node, few of one whose pods are resized in a loop."""

import pytest

from numapin_daemon.log_limit import LEFT_OUT, LogLimit
from numapin_operator.nodes.outputs import WRITES_AT_ONCE, WriteLog
from support.fakes.manual_clock import ManualClock
from support.values.operator import PLANNED, assignment_view


def test_writes_of_one_node_are_logged_at_a_pace(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = ManualClock()
    log = WriteLog(LogLimit(at_once=WRITES_AT_ONCE, per_second=1 / 60, clock=clock))
    for generation in range(1000):
        log.note(assignment_view(PLANNED, generation=generation))
    assert len(caplog.records) == WRITES_AT_ONCE
    clock.stand_still(60)
    log.note(assignment_view(PLANNED, generation=1000))
    last = vars(caplog.records[-1])
    assert (last["generation"], last[LEFT_OUT]) == (1000, 1000 - WRITES_AT_ONCE)
