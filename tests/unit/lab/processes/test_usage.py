"""What processes use, read from this machine's /proc."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from numapin_lab.processes.usage import cpu_seconds, peak_mib, private_mib, resident_mib

READINGS = [resident_mib, peak_mib, private_mib, cpu_seconds]


def test_memory_that_is_used_is_seen_and_given_back() -> None:
    pid = os.getpid()
    before = resident_mib(pid)
    held = bytearray(os.urandom(1)) * (64 << 20)
    grown = resident_mib(pid) - before
    assert 60 < grown < 70
    assert private_mib(pid) > 60
    del held
    assert resident_mib(pid) < before + 8
    assert peak_mib(pid) >= before + 60


def test_cpu_time_that_is_used_is_seen() -> None:
    pid, before = os.getpid(), time.process_time()
    assert abs(cpu_seconds(pid) - before) < 0.2
    while time.process_time() < before + 0.3:
        pass
    assert cpu_seconds(pid) > before + 0.2


@pytest.fixture(params=["gone", "a zombie"])
def ended(request: pytest.FixtureRequest) -> Iterator[int]:
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        if request.param == "gone":
            process.wait()
        else:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


@pytest.mark.parametrize("reading", READINGS)
def test_reading_a_process_that_has_ended_fails(
    ended: int, reading: Callable[[int], float]
) -> None:
    with pytest.raises(ProcessLookupError, match=str(ended)):
        reading(ended)
