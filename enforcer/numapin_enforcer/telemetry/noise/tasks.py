"""Finds the tasks of this machine that ran last on some CPUs."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from numapin_api.cpuset import CpuSet
from numapin_enforcer.cgroups.errors import CgroupError
from numapin_enforcer.cgroups.file_access import read_bytes
from numapin_enforcer.telemetry.noise.stat_text import TaskStat, parse_stat
from numapin_enforcer.telemetry.samples.kernel_counters import ThreadTimes

MOST_TASKS: Final = 65_536
"""Of how many tasks the affinity is read: it takes 1.4 us for each."""

MOST_FOUND: Final = 4096
"""How many are named; a machine has some 8 kernel threads for each CPU."""


class Task(NamedTuple):
    """A task that ran last on one of the CPUs."""

    id: int
    stat: TaskStat
    times: ThreadTimes


class Tasks(NamedTuple):
    """The tasks that were found; `complete` if these are all."""

    found: tuple[Task, ...]
    complete: bool


class TaskReader:
    """The tasks of this PID namespace. What has ended meanwhile counts as gone."""

    def __init__(
        self,
        procfs: Path,
        mask: Callable[[int], int | None],
        times: Callable[[int], ThreadTimes | None],
    ) -> None:
        """Read nothing yet.

        Args:
            procfs: has the processes of this PID namespace.
            mask: the CPUs that a thread may use, as a bit mask.
            times: what a thread has had of CPUs.
        """
        self._procfs, self._mask, self._times = str(procfs), mask, times

    def on(self, cpus: CpuSet, owners: Mapping[int, CpuSet]) -> Tasks:
        """Those that ran last on these CPUs.

        Args:
            cpus: the CPUs.
            owners: threads that belong on CPUs of theirs, and do not count there.
        """
        found, seen, mask = list[Task](), 0, cpus.mask
        for folder, thread in self._threads():
            seen += 1
            if seen > MOST_TASKS or len(found) >= MOST_FOUND:
                return Tasks(tuple(found), complete=False)
            if not (self._mask(thread) or 0) & mask:
                continue
            stat = parse_stat(_read(f"{folder}/{thread}/stat"))
            if stat is None or stat.cpu not in cpus or stat.cpu in owners.get(thread, ()):
                continue
            if (times := self._times(thread)) is not None:
                found.append(Task(thread, stat, times))
        return Tasks(tuple(found), complete=True)

    def _threads(self) -> Iterator[tuple[str, int]]:
        for process in _numbers(self._procfs):
            folder = f"{self._procfs}/{process}/task"
            for thread in _numbers(folder):
                yield folder, thread


def _numbers(folder: str) -> Iterator[int]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - as quick as can be
    except OSError:
        return
    for name in names:
        if name.isascii() and name.isdecimal():
            yield int(name)


def _read(path: str) -> bytes:
    try:
        return read_bytes(path)
    except CgroupError:
        return b""
