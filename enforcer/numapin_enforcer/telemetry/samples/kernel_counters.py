"""The kernel's counters of CPU time, run delay, pressure and memory, of CPUs and of cgroups.

A file that is missing or cannot be read counts as empty: a container may end at any moment, and
no metric is worth an error.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import read_bytes
from numapin_enforcer.cgroups.memory.use import NodeBytes, parse_numa_stat
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.telemetry.samples.interrupts import Interrupt, parse_interrupts

MOST_BYTES: Final = 65536
"""Of a list of threads."""

NANOSECOND: Final = 1e-9
MICROSECOND: Final = 1e-6

_CPU_LINE: Final = re.compile(rb"^cpu(\d+) (\d+) (\d+) (\d+) ", re.MULTILINE)
_USAGE: Final = re.compile(rb"^usage_usec (\d+)$", re.MULTILINE)
_TOTAL: Final = re.compile(rb"^(some|full) .*total=(\d+)$", re.MULTILINE)
_SCHEDSTAT: Final = re.compile(rb"cpu(\d+) (?:\d+ ){8}(\d+)$")
_MIGRATIONS: Final = re.compile(rb"^se\.nr_migrations +: +(\d+)$", re.MULTILINE)
_THREADS: Final = {Version.V1: "tasks", Version.V2: "cgroup.threads"}

Pressure = Mapping[tuple[str, str], float]
"""Seconds of waiting by resource (cpu, memory) and kind (some, full)."""


class ThreadTimes(NamedTuple):
    """What a thread has had of CPUs.

    Attributes:
        ran_seconds: for how long it ran.
        waited_seconds: for how long it was runnable and waited for a CPU.
        slices: how often it began to run.
    """

    ran_seconds: float
    waited_seconds: float
    slices: int


class KernelCounters:
    """Reads counters; nothing is kept between two calls.

    On cgroup v1 CPU time is counted in nanoseconds for each CPU. On v2 it is so only for a cgroup
    as a whole; that of a CPU is counted in ticks (`/proc/stat`), mostly of 10 ms.
    """

    def __init__(self, mounts: Mounts, procfs: Path, interrupts: Path | None = None) -> None:
        """Args: `interrupts` is /proc/interrupts of the host, by default that of `procfs`."""
        self._mounts, self._procfs = mounts, str(procfs)
        self._interrupts = str(interrupts or procfs / "interrupts")
        self._tick_seconds = 1 / os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGESIZE")

    def cpu_seconds(self) -> Mapping[int, float]:
        """CPU time that all tasks together used on each CPU; without interrupts."""
        if self._mounts.cpuacct is not None:
            return self._per_cpu("")
        found = _CPU_LINE.findall(_read(f"{self._procfs}/stat"))
        return {
            int(cpu): (int(user) + int(nice) + int(system)) * self._tick_seconds
            for cpu, user, nice, system in found
        }

    def cgroup_seconds(self, path: str, cpus: Iterable[int]) -> float | None:
        """CPU time that a cgroup used on some CPUs, on v2 on all; None if it is gone."""
        if self._mounts.cpuacct is not None:
            used = self._per_cpu(path)
            return sum(used.get(cpu, 0.0) for cpu in cpus) if used else None
        usage = _USAGE.search(_read(f"{self._mounts.cpuset}/{path}/cpu.stat"))
        return int(usage[1]) * MICROSECOND if usage else None

    def threads(self, path: str) -> tuple[int, ...]:
        """The threads in the cgroup itself."""
        text = _read_lines(f"{self._mounts.cpuset}/{path}/{_THREADS[self._mounts.version]}")
        return tuple(int(one) for one in text.split() if one != b"0")

    def thread_times(self, thread: int) -> ThreadTimes | None:
        """What a thread has used and waited for; None if it is gone.

        Source: Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`.
        """
        fields = _read(f"{self._procfs}/{thread}/schedstat").split()
        if len(fields) != 3:
            return None
        ran, waited, slices = map(int, fields)
        return ThreadTimes(ran * NANOSECOND, waited * NANOSECOND, slices)

    def migrations(self, thread: int) -> int:
        """How often a thread went to another CPU; 0 if it is gone or the kernel does not count.

        A thread chooses the name in the first line, which may have line breaks: the last row of
        that title is the kernel's.
        """
        found = _MIGRATIONS.findall(_read(f"{self._procfs}/{thread}/sched"))
        return int(found[-1]) if found else 0

    def cpu_slices(self) -> Mapping[int, int]:
        """How often a task began to run on each CPU; empty without CONFIG_SCHEDSTATS.

        Source: Documentation/scheduler/sched-stats.rst, "CPU statistics", field 9.
        """
        rows = _rows(f"{self._procfs}/schedstat")
        found = (_SCHEDSTAT.match(row) for row in rows if row.startswith(b"cpu"))
        return {int(one[1]): int(one[2]) for one in found if one}

    def interrupts(self, cpus: CpuSet) -> Iterator[Interrupt]:
        """The interrupts that came on some CPUs; none if they cannot be read."""
        return parse_interrupts(_rows(self._interrupts), cpus)

    def pressure(self, path: str) -> Pressure:
        """For how long tasks of a cgroup waited for CPU and memory; empty on v1 or without PSI.

        Source: Documentation/accounting/psi.rst.
        """
        if self._mounts.version is Version.V1:
            return {}
        return dict(self._pressure(path))

    def numa_bytes(self, path: str) -> NodeBytes:
        """The memory of a cgroup on each NUMA node, without huge pages; see `parse_huge_stat`."""
        if self._mounts.memory is None:
            return {}
        text = _read(f"{self._mounts.memory}/{path}/memory.numa_stat").decode("ascii", "replace")
        return parse_numa_stat(text, self._page_bytes)

    def _pressure(self, path: str) -> Iterator[tuple[tuple[str, str], float]]:
        for resource in ("cpu", "memory"):
            text = _read(f"{self._mounts.cpuset}/{path}/{resource}.pressure")
            for kind, total in _TOTAL.findall(text):
                yield (resource, kind.decode("ascii")), int(total) * MICROSECOND

    def _per_cpu(self, path: str) -> Mapping[int, float]:
        counts = _read(f"{self._mounts.cpuacct}/{path}/cpuacct.usage_percpu").split()
        return {cpu: int(count) * NANOSECOND for cpu, count in enumerate(counts)}


def _read(path: str) -> bytes:
    try:
        return read_bytes(path)
    except CgroupError:
        return b""


def _rows(path: str) -> Iterator[bytes]:
    """The lines of a long file; it ends where it cannot be read."""
    try:
        with open(path, "rb", buffering=MOST_BYTES) as file:  # noqa: PTH123 - as quick as can be
            yield from file
    except OSError:
        return


def _read_lines(path: str) -> bytes:
    """The whole lines of the first `MOST_BYTES`; one read returns 4 KiB at most."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as quick as can be
            return file.read(MOST_BYTES).rpartition(b"\n")[0]
    except OSError:
        return b""
