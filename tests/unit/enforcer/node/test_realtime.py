"""The process takes a real-time priority with all of its threads, and goes on without it."""

import errno
import logging
import os
import subprocess
import sys

import pytest

from numapin_enforcer.node.realtime import DEFAULT_PRIORITY, REFUSED, raise_priority

SCHEDULED = """
import os, subprocess, threading
from numapin_enforcer.node.realtime import raise_priority, thread_pool
if os.geteuid() == 0:
    raise_priority(98)
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


def test_the_priority_is_above_those_of_interrupts_and_pods_and_below_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int, int]] = []

    def accept(pid: int, policy: int, parameters: os.sched_param) -> None:
        asked.append((pid, policy, parameters.sched_priority))

    monkeypatch.setattr(os, "sched_setscheduler", accept)
    assert raise_priority(DEFAULT_PRIORITY) == ""
    ((pid, policy, priority),) = asked
    assert (pid, policy) == (0, os.SCHED_RR)
    assert 50 < priority < os.sched_get_priority_max(os.SCHED_RR)


def _refuse(pid: int, policy: int, parameters: os.sched_param) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_without_the_capability_the_process_goes_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also on cgroup v1, where the kernel gives no pod real-time CPU time of its own."""
    monkeypatch.setattr(os, "sched_setscheduler", _refuse)
    said = raise_priority(60)
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.WARNING, REFUSED)
    assert said.startswith(REFUSED)
    assert "cpu.rt_runtime_us" in said


def test_an_ordinary_process_asks_for_nothing_and_lacks_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(os, "sched_setscheduler", _refuse)
    assert raise_priority(0) == ""
    assert caplog.records == []
