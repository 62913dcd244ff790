"""The process takes a real-time priority with all of its threads, and goes on without it."""

import logging
import os
import subprocess
import sys

import pytest

from numapin_enforcer.node.realtime import raise_priority

SCHEDULED = """
import os, subprocess, threading
from numapin_enforcer.node.realtime import raise_priority, thread_pool
if os.geteuid() == 0:
    raise_priority()
ASK = ["python", "-c", "import os; print(os.sched_getscheduler(0))"]
found = []
def look():
    found.append(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)
look()
thread = threading.Thread(target=look)
thread.start()
thread.join()
with thread_pool() as pool:
    pool.submit(look).result()
    started = pool.submit(subprocess.run, ASK, capture_output=True, text=True, executable=EXE)
    found.append(int(started.result().stdout))
print(*found)
"""


def _scheduled() -> list[int]:
    """The policies of a process, a thread, a pooled thread, and a program that this starts."""
    program = f"EXE = {sys.executable!r}\n{SCHEDULED}"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    )
    return [int(word) for word in done.stdout.split()]


def test_threads_have_the_priority_and_programs_that_they_start_do_not() -> None:
    realtime = os.SCHED_RR if os.geteuid() == 0 else os.SCHED_OTHER
    assert _scheduled() == [realtime, realtime, realtime, os.SCHED_OTHER]


def test_the_lowest_priority_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int, int]] = []

    def accept(pid: int, policy: int, parameters: os.sched_param) -> None:
        asked.append((pid, policy, parameters.sched_priority))

    monkeypatch.setattr(os, "sched_setscheduler", accept)
    raise_priority()
    assert asked == [(0, os.SCHED_RR, 1)]


def test_without_the_capability_the_process_goes_on_and_logs_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(pid: int, policy: int, parameters: os.sched_param) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    raise_priority()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "no real-time priority" in record.message
