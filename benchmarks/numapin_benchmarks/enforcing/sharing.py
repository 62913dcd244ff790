"""How long an exclusive CPU is shared: numapin compared with the kubelet's static policy.

The same observer watches three cases on both:

- a busy container must leave the CPU that a new exclusive container gets;
- cpusets of an exclusive container and of five neighbours are overwritten, one after the other;
- an exclusive container is force-deleted (grace period 0) while its process runs, and a new one is
  created at once.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_benchmarks.enforcing.drift import cpus_of, repair
from numapin_benchmarks.enforcing.labs import Bench
from numapin_benchmarks.figures import Figure
from numapin_benchmarks.surroundings import progress
from numapin_campaigns.recording.recording import Change, Recording, recording
from numapin_lab.running_lab import BUSY, pod

WAIT_SECONDS = 60.0
NEIGHBOURS = 5
SEED = 20_261


@dataclass(frozen=True)
class Effort:
    """Repetitions of each case, and the waiting times."""

    arrivals: int
    overwritings: int
    deletions: int
    period_seconds: float = 0.0
    """The peer's reconcile period: a new container comes at a random moment within it."""
    repair_seconds: float = 30.0


def compare(bench: Bench, effort: Effort) -> Iterator[Figure]:
    """Measure the three cases on one lab."""
    with recording(bench.lab.kubepods) as record:
        arrivals = _repeat(bench, effort.arrivals, lambda: arrive(bench, record, effort))
        deletions = _repeat(bench, effort.deletions, lambda: replace(bench, record))
    repairs = _repeat(bench, effort.overwritings, lambda: overwrite(bench, effort))
    each = [value for run in repairs for value in run]
    late = sum(map(math.isinf, each))
    note = f"{late} of {len(each)} not in {effort.repair_seconds:.0f} s" if late else ""
    shared = [[one for run in arrivals for one in run]]
    yield Figure(f"{bench.name}: neighbour stays", "ms", shared, "after the owner's first process")
    yield Figure(f"{bench.name}: overwritten set repaired", "ms", [each], note)
    if deletions:
        two, waits = ([run[number] for run in deletions] for number in (0, 1))
        yield Figure(f"{bench.name}: two owners of a CPU", "ms", [two])
        yield Figure(f"{bench.name}: next owner waits for it", "ms", [waits])


def _repeat(bench: Bench, times: int, act: Callable[[], Sequence[float]]) -> list[Sequence[float]]:
    found = []
    for number in range(times):
        found.append(act())
        progress(f"  {number + 1} of {times}: {' '.join(f'{value:.1f}' for value in found[-1])} ms")
        bench.clear()
    return found


def runs(change: Change) -> bool:
    """Whether the cgroup holds a process."""
    return change.runs


def arrive(bench: Bench, record: Recording, effort: Effort) -> list[float]:
    """Milliseconds that a busy neighbour shares the CPU of a new exclusive container."""
    bench.create(pod("neighbour", BUSY))
    neighbour = bench.container("neighbour")
    record.wait(neighbour, runs, WAIT_SECONDS)
    time.sleep(random.Random(f"{SEED} {time.time_ns()}").uniform(0, effort.period_seconds))
    bench.create(pod("owner", BUSY, cpu="1"))
    owner = bench.container("owner")
    record.wait(owner, runs, WAIT_SECONDS)
    bench.wait(lambda: _apart(record, owner, neighbour), "the neighbour to leave")
    return [record.seconds_shared(owner, neighbour) * 1000]


def _apart(record: Recording, owner: str, other: str) -> bool:
    mine, theirs = record.state(owner), record.state(other)
    return mine is not None and theirs is not None and mine.cpus.isdisjoint(theirs.cpus)


def replace(bench: Bench, record: Recording) -> tuple[float, float]:
    """Milliseconds that two containers share the CPU, and until the second one has it alone.

    The first ignores SIGTERM, as a process 1 without a signal handler does.
    """
    bench.create(pod("first", BUSY, cpu="1"))
    first = bench.container("first")
    record.wait(first, lambda one: one.runs and len(one.cpus) == 1, WAIT_SECONDS)
    own = record.groups[first][-1].cpus
    bench.kill("first")
    asked = time.monotonic()
    bench.create(pod("second", BUSY, cpu="1"))
    second = bench.container("second")
    alone = record.wait(second, lambda one: one.runs and one.cpus == own, WAIT_SECONDS)
    bench.wait(lambda: not record.groups[first][-1].runs, "the first container to end")
    return record.seconds_shared(first, second) * 1000, (alone - asked) * 1000


def overwrite(bench: Bench, effort: Effort) -> list[float]:
    """Milliseconds until each overwritten container has its set again; infinite if never."""
    names = ["owner", *(f"neighbour-{number}" for number in range(NEIGHBOURS))]
    for name in names[1:]:
        bench.create(pod(name))
    bench.create(pod("owner", cpu="1"))
    groups = [bench.group(name) for name in names]
    bench.wait(lambda: _fenced(groups), "the neighbours to leave")
    # The kubelet writes the set of a new container again when it first reconciles.
    time.sleep(1.5 * effort.period_seconds)
    return repair(groups, bench.lab.kubepods, effort.repair_seconds)


def _fenced(groups: Sequence[Path]) -> bool:
    owned, *others = (CpuSet.parse(cpus_of(group)) for group in groups)
    return len(owned) == 1 and all(owned.isdisjoint(other) for other in others)
