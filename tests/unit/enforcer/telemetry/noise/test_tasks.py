"""Tasks of this machine, and names that they choose."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.text import escaped
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.telemetry.noise import tasks
from numapin_enforcer.telemetry.noise.stat_text import TaskStat, parse_stat
from numapin_enforcer.telemetry.noise.tasks import TaskReader
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.threads.reader import ThreadReader

PROC = Path("/proc")
HOSTILE = [b"web", b") R 1", b"a b (c", b"\n1 (x) S 0", b"\x1b[2J\xff", b"))))"]
ONE_CPU = CpuSet((min(os.sched_getaffinity(0)),))
LOOP = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
with open("/proc/self/comm", "wb") as file:
    file.write(bytes.fromhex(sys.argv[2]))
print("there", flush=True)
while True:
    pass
"""


def text(name: bytes, flags: int = 0, start: int = 500, cpu: int = 3) -> bytes:
    fields = [0] * 50
    fields[4], fields[17], fields[34] = flags, start, cpu
    return b"77 (" + name + b") R 1 " + " ".join(map(str, fields)).encode() + b"\n"


def reader(procfs: Path = PROC) -> TaskReader:
    mounts = Mounts(Version.V2, Path("/nowhere"), None)
    counters = KernelCounters(mounts, PROC)
    return TaskReader(procfs, ThreadReader(mounts, PROC).mask, counters.thread_times)


@contextmanager
def loop(name: bytes, cpu: int) -> Iterator[int]:
    """A process that loops on a CPU and calls itself so."""
    command = [sys.executable, "-c", LOOP, str(cpu), name.hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_stat_whatever_the_name(name: bytes) -> None:
    expected = TaskStat(escaped(name), is_kernel=False, start_ticks=500, cpu=3)
    assert parse_stat(text(name)) == expected


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_no_name_is_taken_for_fields(name: bytes) -> None:
    found = parse_stat(text(name, flags=0x00200000, start=9, cpu=1))
    assert found == TaskStat(escaped(name), is_kernel=True, start_ticks=9, cpu=1)


@given(st.binary(max_size=300))
def test_no_text_makes_it_fail(raw: bytes) -> None:
    found = parse_stat(raw)
    assert found is None or found.name.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_task_of_this_machine_is_found_where_it_runs(name: bytes) -> None:
    (cpu,) = ONE_CPU
    with loop(name, cpu) as process:
        found = {one.id: one for one in reader().on(ONE_CPU, {}).found}
        assert found[process].stat.name == escaped(name)
        assert found[process].stat.cpu == cpu
        assert found[process].times.slices > 0
        own = reader().on(ONE_CPU, {process: ONE_CPU})
        assert process not in {one.id for one in own.found}
        elsewhere = reader().on(ONE_CPU, {process: CpuSet((cpu + 1,))})
        assert process in {one.id for one in elsewhere.found}


def test_kernel_threads_are_told_from_programs() -> None:
    found = reader().on(ONE_CPU, {}).found
    (cpu,) = ONE_CPU
    kernel = {one.stat.name for one in found if one.stat.is_kernel}
    assert f"ksoftirqd/{cpu}" in kernel or not kernel, "no kernel threads in a PID namespace"


def test_no_cpu_and_no_processes_give_no_tasks(tmp_path: Path) -> None:
    assert reader().on(CpuSet(), {}) == ((), True)
    assert reader(tmp_path).on(ONE_CPU, {}) == ((), True)


def test_so_many_tasks_that_not_all_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (cpu,) = ONE_CPU
    with loop(b"a", cpu), loop(b"b", cpu):
        monkeypatch.setattr(tasks, "MOST_FOUND", 1)
        found = reader().on(ONE_CPU, {})
        assert (len(found.found), found.complete) == (1, False)
        monkeypatch.setattr(tasks, "MOST_TASKS", 0)
        assert reader().on(ONE_CPU, {}) == ((), False)
