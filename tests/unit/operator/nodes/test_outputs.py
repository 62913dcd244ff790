"""Writes in the log: all of a quiet node, few of one whose pods are resized in a loop."""

import pytest

from numapin_daemon.logs.log_limit import LEFT_OUT, LogLimit
from numapin_operator.nodes.outputs import LINES_AT_ONCE, NodeLog
from support.fakes.manual_clock import ManualClock
from support.values.operator import PLANNED, assignment_view


def test_writes_of_one_node_are_logged_at_a_pace(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = ManualClock()
    log = NodeLog(LogLimit(at_once=LINES_AT_ONCE, per_second=1 / 60, clock=clock))
    for generation in range(1000):
        log.written(assignment_view(PLANNED, generation=generation))
    assert len(caplog.records) == LINES_AT_ONCE
    clock.stand_still(60)
    log.written(assignment_view(PLANNED, generation=1000))
    last = vars(caplog.records[-1])
    assert (last["generation"], last[LEFT_OUT]) == (1000, 1000 - LINES_AT_ONCE)


def test_a_node_that_fails_in_a_loop_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    log = NodeLog(LogLimit(at_once=LINES_AT_ONCE, per_second=1 / 60, clock=ManualClock()))
    for _ in range(1000):
        log.failed("node-1", ValueError("refused"), 1.0)
        log.not_released("node-1")
    log.failed("node-2", ValueError("refused"), 1.0)
    nodes = [vars(one)["node"] for one in caplog.records]
    assert nodes == ["node-1"] * 2 * LINES_AT_ONCE + ["node-2"]
