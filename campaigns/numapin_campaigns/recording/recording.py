"""Record the changes that the observer reports, and how long two containers shared a CPU."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_lab.errors import LabError

OBSERVER = Path(__file__).with_name("observer.py")
WAIT_SECONDS = 120.0
POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Change:
    """From `at` (monotonic seconds) on the cgroup has these CPUs; `runs`: it has a process."""

    at: float
    cpus: CpuSet
    runs: bool


@dataclass
class Recording:
    """The changes of each cgroup so far, by its folder's name (a container's id, `pod<uid>`)."""

    groups: dict[str, list[Change]] = field(default_factory=dict)
    quality: dict[str, float] = field(default_factory=dict)
    ready: threading.Event = field(default_factory=threading.Event)

    def take(self, lines: Iterator[str]) -> None:
        """Read the observer's lines until it ends."""
        for line in lines:
            report: Any = json.loads(line)
            if isinstance(report, dict):
                self.quality = report
            else:
                at, path, cpus, runs = report
                change = Change(at, CpuSet.parse(cpus or ""), runs)
                self.groups.setdefault(path.rpartition("/")[2], []).append(change)
            self.ready.set()

    def first(self, group: str, wanted: Callable[[Change], bool]) -> float | None:
        """When the cgroup was first as wanted, or None."""
        return next((one.at for one in list(self.groups.get(group, ())) if wanted(one)), None)

    def wait(self, group: str, wanted: Callable[[Change], bool], seconds: float) -> float:
        """Wait until the cgroup is as wanted; returns when it first was.

        Raises:
            LabError: it was not as wanted within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while (found := self.first(group, wanted)) is None:
            if time.monotonic() > deadline:
                raise LabError(f"{group} was never as wanted: {self.groups.get(group)}")
            time.sleep(POLL_SECONDS)
        return found

    def state(self, group: str) -> Change | None:
        """The last change of the cgroup."""
        changes = self.groups.get(group)
        return changes[-1] if changes else None

    def cpus(self, group: str) -> list[CpuSet]:
        """Each set that the cgroup had, in order, until it was gone."""
        had = [one.cpus for one in self.groups[group] if one.cpus]
        return [cpus for cpus, last in zip(had, [None, *had], strict=False) if cpus != last]

    def seconds_shared(self, one: str, other: str) -> float:
        """How long both had a process that could run on the CPUs that `one` has in the end."""
        mine, theirs = self.groups[one], self.groups[other]
        return seconds_shared(mine, theirs, [each.cpus for each in mine if each.runs][-1])


def seconds_shared(one: Sequence[Change], other: Sequence[Change], cpus: CpuSet) -> float:
    """How long both have a process that may run on the same of `cpus`, up to the last change."""
    times = sorted({change.at for change in (*one, *other)})
    total = 0.0
    for start, stop in pairwise(times):
        a, b = _state_at(one, start), _state_at(other, start)
        if a and b and a.runs and b.runs and a.cpus & b.cpus & cpus:
            total += stop - start
    return total


def _state_at(changes: Sequence[Change], at: float) -> Change | None:
    return next((one for one in reversed(changes) if one.at <= at), None)


@contextmanager
def recording(kubepods: Path) -> Iterator[Recording]:
    """Observe every cgroup below `kubepods` while the context lasts."""
    pipe = subprocess.PIPE
    command = [sys.executable, str(OBSERVER), str(kubepods)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as observer:
        assert observer.stdin
        assert observer.stdout
        found = Recording()
        reader = threading.Thread(target=found.take, args=(iter(observer.stdout),), daemon=True)
        reader.start()
        try:
            if not found.ready.wait(WAIT_SECONDS):
                raise LabError(f"the observer has not begun within {WAIT_SECONDS:.0f} s")
            yield found
        finally:
            observer.stdin.close()
            reader.join(WAIT_SECONDS)
            observer.wait(WAIT_SECONDS)
