"""Time from a container's cgroup to its exclusive CPUs, and to its first process."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from numapin_benchmarks.enforcing.labs import Bench
from numapin_benchmarks.figures import Figure, in_runs
from numapin_benchmarks.surroundings import progress
from numapin_campaigns.recording.recording import Recording, recording
from numapin_lab.running_lab import pod

RUNS = 5
WAIT_SECONDS = 60.0
LOOK = ("grep", "Cpus_allowed_list", "/proc/self/status")
"""The container's program itself, so that nothing in the container runs before it."""


@dataclass(frozen=True)
class Start:
    """One container's start: monotonic seconds, and the CPUs its program saw first."""

    made: float
    pinned: float
    first_process: float
    own: str
    printed: str


def measure(bench: Bench, pods: int) -> Iterator[Figure]:
    """Start `pods` pods, one after the other."""
    with recording(bench.lab.kubepods) as record:
        starts = [start(bench, record, number) for number in range(pods)]
    taken = [(one.pinned - one.made) * 1000 for one in starts]
    margin = [(one.first_process - one.pinned) * 1000 for one in starts]
    right = sum(one.printed == one.own for one in starts)
    early = sum(one > 0 for one in margin)
    name = bench.name
    yield Figure(f"{name}: cgroup made to pinned", "ms", in_runs(taken, RUNS))
    note = f"first: {early} of {pods}; program saw its own CPU: {right} of {pods}"
    yield Figure(f"{name}: pinned to first process", "ms", in_runs(margin, RUNS), note)


def start(bench: Bench, record: Recording, number: int) -> Start:
    """Start one exclusive container, and read what it printed."""
    name = f"start-{number}"
    bench.create(pod(name, LOOK, cpu="1"))
    log, group = bench.log(name), bench.container(name)
    bench.wait(lambda: _printed(log) != "", "the program to print")
    first = record.wait(group, lambda one: one.runs, WAIT_SECONDS)
    own = [one.cpus for one in record.groups[group] if one.runs][-1]
    made = record.groups[group][0].at
    pinned = record.wait(group, lambda one: one.cpus == own, WAIT_SECONDS)
    found = Start(made, pinned, first, str(own), _printed(log))
    if (number + 1) % 10 == 0:
        progress(f"  {number + 1} pods")
    bench.clear()
    return found


def _printed(log: Path) -> str:
    """The output of the program. Source: CRI log format, `TIME STREAM TAGS TEXT`."""
    return log.read_text().split()[-1] if log.exists() and log.stat().st_size else ""
