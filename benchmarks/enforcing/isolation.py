"""What a busy container gets of its CPU: alone, among six busy neighbours, and pinned beside them.

One victim lives through all three; nothing of it is restarted when the policy comes. It is a
Guaranteed pod that asks for one CPU. The neighbours are Burstable and ask for 150m each, so that
everything fits by the requests, and each burns what it can get.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from figures import Figure
from labs import POLICY, Bench, tell

from numapin_lab.session import BUSY, pod, policy

NEIGHBOURS = 6
NEIGHBOUR_CPU = "150m"
PHASE_SECONDS = 4.0
SETTLE_SECONDS = 1.0
"""What follows the change is shown, but not counted in the figures of the phase."""

QUIET_SHARE = 90.0
"""Per cent of a CPU that a busy process gets on a machine that has nothing else to do."""

SAMPLE_SECONDS = 0.2
ALONE, UNPINNED, PINNED = PHASES = ("alone", "unpinned", "pinned")


@dataclass(frozen=True)
class Sample:
    """Seconds since the phase began; CPU time and waiting time of the victim, in seconds."""

    at: float
    ran: float
    waited: float


Run = dict[str, list[Sample]]
"""The samples of each phase."""


def measure(bench: Bench, count: int) -> tuple[list[Figure], list[dict[str, list[Any]]]]:
    """`count` runs: their figures, and every sample for the picture."""
    bench.session.delete("cpupolicy", POLICY)
    runs = []
    for number in range(count):
        runs.append(run(bench))
        if share(runs[-1][ALONE]) < QUIET_SHARE:
            tell("  the machine is busy with something else: this says nothing")
        shown = ", ".join(f"{phase} {share(runs[-1][phase]):.0f} %" for phase in PHASES)
        tell(f"  {number + 1} of {count}: {shown} of a CPU")
        bench.session.delete("cpupolicy", POLICY)
        bench.clear()
    bench.session.apply(policy(POLICY))
    return list(_figures(runs)), [
        {phase: [astuple(one) for one in samples] for phase, samples in one.items()} for one in runs
    ]


def _figures(runs: Sequence[Run]) -> Iterator[Figure]:
    for name, unit, read in (("CPU share", "%", share), ("waiting", "ms/s", waiting)):
        for phase in PHASES:
            yield Figure(f"victim's {name}, {phase}", unit, [[read(one[phase])] for one in runs])


def share(samples: Sequence[Sample]) -> float:
    """Per cent of a CPU that the victim got."""
    first, last = _counted(samples)
    return (last.ran - first.ran) / (last.at - first.at) * 100


def waiting(samples: Sequence[Sample]) -> float:
    """Milliseconds in each second that it could run and did not (run-delay)."""
    first, last = _counted(samples)
    return (last.waited - first.waited) / (last.at - first.at) * 1000


def _counted(samples: Sequence[Sample]) -> tuple[Sample, Sample]:
    return next(one for one in samples if one.at >= SETTLE_SECONDS), samples[-1]


def run(bench: Bench) -> Run:
    """One victim through the three phases."""
    bench.create(pod("victim", BUSY, cpu="1"))
    victim = _process(bench, "victim")
    found = {ALONE: watch(victim)}
    names = [f"neighbour-{number}" for number in range(NEIGHBOURS)]
    for name in names:
        bench.create(_burstable(name))
    for name in names:
        _process(bench, name)
    found[UNPINNED] = watch(victim)
    bench.session.apply(policy(POLICY))
    found[PINNED] = watch(victim)
    return found


def _burstable(name: str) -> dict[str, Any]:
    body = pod(name, BUSY)
    requests = {"cpu": NEIGHBOUR_CPU, "memory": "8Mi"}
    body["spec"]["containers"][0]["resources"] = {"requests": requests}
    return body


def _process(bench: Bench, name: str) -> Path:
    """The first process of a pod's container, in /proc."""
    processes = bench.group(name) / "cgroup.procs"
    bench.wait(lambda: bool(processes.read_text()), f"a process of {name}")
    return Path("/proc") / processes.read_text().split()[0]


def watch(process: Path) -> list[Sample]:
    """Look at one process for the length of a phase.

    Source: Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat", in nanoseconds.
    """
    start, samples = time.monotonic(), list[Sample]()
    while not samples or samples[-1].at < PHASE_SECONDS:
        ran, waited, _ = (process / "schedstat").read_text().split()
        at = round(time.monotonic() - start, 3)
        samples.append(Sample(at, round(int(ran) / 1e9, 4), round(int(waited) / 1e9, 4)))
        time.sleep(SAMPLE_SECONDS)
    return samples
