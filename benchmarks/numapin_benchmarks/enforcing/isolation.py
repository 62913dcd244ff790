"""CPU time and latency of a small service: alone, beside six busy containers, and pinned.

The service works 1 ms every 5 ms (service.py), in a Guaranteed pod that requests one CPU. The same
process runs through all three phases; the policy restarts nothing. The other pods are Burstable,
request 150m each and are always busy, so the requests fit on the node. Requests are weights: a
container that is always busy gets its request over time, pinned or not. Without pinning, the
service does not get the CPU at the moment at which it needs it.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from numapin_benchmarks.enforcing.labs import POLICY, Bench
from numapin_benchmarks.figures import Figure
from numapin_benchmarks.surroundings import progress
from numapin_lab.running_lab import BUSY, pod, policy

SERVICE = Path(__file__).with_name("service.py")
NEIGHBOURS = 6
NEIGHBOUR_CPU = "150m"
PHASE_SECONDS = 4.0
WARM_UP_SECONDS = 1.0
"""Windows this soon after a change of phase are drawn, but not counted in the figures."""

WINDOW_SECONDS = 0.2
QUIET_SHARE = 80.0
"""The least CPU share in per cent, alone, with which the machine counts as idle."""

ALONE, UNPINNED, PINNED = PHASES = ("alone", "unpinned", "pinned")


@dataclass(frozen=True)
class Window:
    """A fifth of a second of the service.

    Attributes:
        at: its end, in seconds since the phase began.
        ran: CPU time of the process so far, in seconds.
        waited: time so far in which it was runnable but did not run (run-delay), in seconds.
        answered: milliseconds from due to done for each request.
    """

    at: float
    ran: float
    waited: float
    answered: tuple[float, ...]

    @property
    def counts(self) -> bool:
        """Whether it counts in the figures."""
        return self.at >= WARM_UP_SECONDS


Run = dict[str, list[Window]]
"""The windows of each phase."""


def measure(bench: Bench, count: int) -> tuple[list[Figure], list[dict[str, list[Any]]]]:
    """The figures of `count` runs, and every window for the picture."""
    bench.lab.delete("cpupolicy", POLICY)
    runs = []
    for number in range(count):
        runs.append(run(bench))
        shown = ", ".join(f"{phase} {share(runs[-1][phase]):.0f} %" for phase in PHASES)
        progress(f"  {number + 1} of {count}: {shown} of the CPU time wanted")
        if share(runs[-1][ALONE]) < QUIET_SHARE:
            progress("  the machine is busy with other work: this run is not meaningful")
        bench.lab.delete("cpupolicy", POLICY)
        bench.clear()
    bench.lab.apply(policy(POLICY))
    return list(_figures(runs)), [
        {phase: [to_json(one) for one in windows] for phase, windows in one.items()} for one in runs
    ]


def to_json(window: Window) -> list[float]:
    """The data of the picture: time, CPU time, waiting time, slowest answer."""
    return [*astuple(window)[:3], max(window.answered)]


def _figures(runs: Sequence[Run]) -> Iterator[Figure]:
    for phase in PHASES:
        answers = [[ms for one in run[phase] if one.counts for ms in one.answered] for run in runs]
        yield Figure(f"service's answer, {phase}", "ms", answers)
    for name, unit, read in (("CPU share", "%", share), ("waiting", "ms/s", waiting)):
        for phase in PHASES:
            yield Figure(f"service's {name}, {phase}", unit, [[read(run[phase])] for run in runs])


def share(windows: Sequence[Window]) -> float:
    """CPU time in per cent of the time in which the service was runnable."""
    ran, waited, _ = _grown(windows)
    return ran / (ran + waited) * 100


def waiting(windows: Sequence[Window]) -> float:
    """Milliseconds in each second in which the service was runnable but did not run."""
    _, waited, seconds = _grown(windows)
    return waited / seconds * 1000


def _grown(windows: Sequence[Window]) -> tuple[float, float, float]:
    """CPU time, waiting time and duration of the windows that count."""
    first, last = next(one for one in windows if one.counts), windows[-1]
    return last.ran - first.ran, last.waited - first.waited, last.at - first.at


def run(bench: Bench) -> Run:
    """Run one service through the three phases."""
    bench.create(_service("service"))
    process, log = bench.process("service"), bench.log("service")
    bench.wait(lambda: bool(answers(log, 0)), "the service to answer")
    found = {ALONE: watch(process, log)}
    names = [f"neighbour-{number}" for number in range(NEIGHBOURS)]
    for name in names:
        bench.create(_burstable(name))
    for name in names:
        bench.process(name)
    found[UNPINNED] = watch(process, log)
    bench.lab.apply(policy(POLICY))
    found[PINNED] = watch(process, log)
    return found


def _service(name: str) -> dict[str, Any]:
    """The service's pod; it mounts this machine's Python, since the lab's image has none."""
    program = Path(sys.executable).resolve()
    body = pod(name, (str(program), "-S", "-c", SERVICE.read_text()), cpu="1")
    folders = {f"machine-{number}": folder for number, folder in enumerate(_python_folders())}
    container = body["spec"]["containers"][0]
    container["volumeMounts"] = [
        {"name": volume, "mountPath": folder, "readOnly": True}
        for volume, folder in folders.items()
    ]
    for amounts in container["resources"].values():
        amounts["memory"] = "64Mi"
    body["spec"]["volumes"] = [
        {"name": volume, "hostPath": {"path": folder}} for volume, folder in folders.items()
    ]
    return body


def _python_folders() -> list[str]:
    """The folders of this Python and its libraries."""
    known = {"/lib", "/lib64", "/usr", sys.base_prefix}
    return [folder for folder in sorted(known) if Path(folder).exists()]


def _burstable(name: str) -> dict[str, Any]:
    body = pod(name, BUSY)
    requests = {"cpu": NEIGHBOUR_CPU, "memory": "8Mi"}
    body["spec"]["containers"][0]["resources"] = {"requests": requests}
    return body


def watch(process: Path, log: Path) -> list[Window]:
    """Observe the service for one phase.

    Source: Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat", in nanoseconds.
    """
    start, windows = time.monotonic(), list[Window]()
    while not windows or windows[-1].at < PHASE_SECONDS:
        time.sleep(WINDOW_SECONDS)
        now = time.monotonic()
        ran, waited, _ = (int(word) / 1e9 for word in (process / "schedstat").read_text().split())
        windows.append(Window(round(now - start, 3), round(ran, 4), round(waited, 4), ()))
    return list(_with_answers(windows, answers(log, start), start))


def _with_answers(
    windows: Sequence[Window], printed: dict[float, tuple[float, ...]], start: float
) -> Iterator[Window]:
    """Each window with the answers printed in it; windows without answers are left out."""
    last = 0.0
    for one in windows:
        answered = [
            ms for at, times in printed.items() if last < at - start <= one.at for ms in times
        ]
        if answered:
            yield Window(one.at, one.ran, one.waited, tuple(answered))
            last = one.at


def answers(log: Path, since: float) -> dict[float, tuple[float, ...]]:
    """The milliseconds of each request printed since `since`, by the end of the window.

    Source: CRI log format, `TIME STREAM TAGS TEXT`.
    """
    lines = log.read_text().splitlines() if log.exists() else []
    found = {}
    for line in lines:
        at, *answered = (float(word) for word in line.split()[3:])
        if at > since:
            found[at] = tuple(answered)
    return found
