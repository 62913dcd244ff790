"""Kill the enforcer: time until the standby fences, and until a new pod is fenced."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from numapin_benchmarks.enforcing.labs import Bench
from numapin_benchmarks.enforcing.start import LOOK
from numapin_benchmarks.figures import Figure, in_runs
from numapin_benchmarks.surroundings import progress
from numapin_campaigns.recording.recording import Recording, recording
from numapin_enforcer.standby.fencing import ENFORCER_AWAY
from numapin_lab.running_lab import pod

RUNS = 5
WAIT_SECONDS = 60.0
OWNER = "owner"


@dataclass(frozen=True)
class Death:
    """One kill of the enforcer, and one pod created while it was down.

    `away`: wall-clock seconds from the kill to the standby's log line; `made` and `fenced`:
    monotonic seconds; `printed`: the CPUs that the pod's program saw first; `shared`: the CPUs
    it may use.
    """

    away: float
    made: float
    fenced: float
    printed: str
    shared: str


def measure(bench: Bench, deaths: int) -> Iterator[Figure]:
    """Kill the enforcer `deaths` times."""
    bench.create(pod(OWNER, cpu="1"))
    with recording(bench.lab.kubepods) as record:
        found = [death(bench, record, number) for number in range(deaths)]
    bench.clear()
    away = [one.away * 1000 for one in found]
    fenced = [(one.fenced - one.made) * 1000 for one in found]
    right = sum(one.printed == one.shared for one in found)
    yield Figure("killed until the standby fences", "ms", in_runs(away, RUNS))
    note = f"program saw no exclusive CPU: {right} of {deaths}"
    yield Figure("new pod: cgroup created to fenced", "ms", in_runs(fenced, RUNS), note)


def death(bench: Bench, record: Recording, number: int) -> Death:
    """Kill the enforcer, start a Guaranteed pod, and start the enforcer again."""
    lab = bench.lab
    bench.wait(lambda: any(lab.reported_exclusive()), "the container to be reported exclusive")
    log = lab.cluster.standby.folder / "log"
    before = len(_times(log))
    pid = lab.agent("enforcer").daemon.pid()
    assert pid is not None
    killed_at = time.time()
    os.kill(pid, signal.SIGKILL)
    bench.wait(lambda: len(_times(log)) > before, "the standby")
    name = f"new-{number}"
    # A small request: the kubelet counts pods that have just ended for a moment longer.
    bench.create(pod(name, LOOK, cpu="50m"))
    group = f"pod{bench.get(name)['metadata']['uid']}"
    printed = bench.log(name)
    bench.wait(lambda: printed.exists() and printed.stat().st_size > 0, "the program to print")
    assignment = lab.assignment()
    assert assignment is not None
    assert assignment.spec.pools is not None
    shared = assignment.spec.pools.shared
    fenced = record.wait(group, lambda one: one.cpus == shared, WAIT_SECONDS)
    made = record.groups[group][0].at
    lab.restart("enforcer")
    if (number + 1) % 5 == 0:
        progress(f"  {number + 1} kills")
    said = printed.read_text().split()[-1]
    return Death(_times(log)[before] - killed_at, made, fenced, said, str(shared))


def _times(log: Path) -> list[float]:
    """When the standby logged that the enforcer is away; seconds since the epoch."""
    lines = log.read_text().splitlines()
    return [
        datetime.fromisoformat(line.split()[0]).timestamp()
        for line in lines
        if ENFORCER_AWAY in line
    ]
