"""What a small service gets of its CPU: alone, among six busy containers, and pinned beside them.

The service works 1 ms every 5 ms (service.py), in a Guaranteed pod that asks for one CPU. One and
the same process lives through all three: nothing is restarted when the policy comes. The others are
Burstable and ask for 150m each, so that by the requests everything fits; each burns what it gets.
Requests weigh: a container that is always busy gets what it asked for in the long run, pinned or
not. What it does not get is the CPU at the moment at which it wants it.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from labs import POLICY, Bench, progress

from numapin_lab.measurement.figures import Figure
from numapin_lab.running_lab import BUSY, pod, policy

SERVICE = Path(__file__).with_name("service.py")
NEIGHBOURS = 6
NEIGHBOUR_CPU = "150m"
PHASE_SECONDS = 4.0
SETTLE_SECONDS = 1.0
"""What follows the change is shown, but not counted in the figures of the phase."""

WINDOW_SECONDS = 0.2
QUIET_SHARE = 80.0
"""Per cent that the service gets, while it wants the CPU, of a machine that has nothing to do."""

ALONE, UNPINNED, PINNED = PHASES = ("alone", "unpinned", "pinned")


@dataclass(frozen=True)
class Window:
    """A fifth of a second of the service.

    Attributes:
        at: its end, in seconds since the phase began.
        ran: CPU time of the process so far, in seconds.
        waited: how long so far it could run and did not (run-delay), in seconds.
        answered: milliseconds from due to done, of each request.
    """

    at: float
    ran: float
    waited: float
    answered: tuple[float, ...]

    @property
    def settled(self) -> bool:
        """Whether it counts in the figures."""
        return self.at >= SETTLE_SECONDS


Run = dict[str, list[Window]]
"""The windows of each phase."""


def measure(bench: Bench, count: int) -> tuple[list[Figure], list[dict[str, list[Any]]]]:
    """`count` runs: their figures, and every window for the picture."""
    bench.lab.delete("cpupolicy", POLICY)
    runs = []
    for number in range(count):
        runs.append(run(bench))
        shown = ", ".join(f"{phase} {share(runs[-1][phase]):.0f} %" for phase in PHASES)
        progress(f"  {number + 1} of {count}: {shown} of the CPU that it wanted")
        if share(runs[-1][ALONE]) < QUIET_SHARE:
            progress("  the machine is busy with something else: this says nothing")
        bench.lab.delete("cpupolicy", POLICY)
        bench.clear()
    bench.lab.apply(policy(POLICY))
    return list(_figures(runs)), [
        {phase: [to_json(one) for one in windows] for phase, windows in one.items()} for one in runs
    ]


def to_json(window: Window) -> list[float]:
    """What the picture needs: when, CPU time, waiting time, the slowest answer."""
    return [*astuple(window)[:3], max(window.answered)]


def _figures(runs: Sequence[Run]) -> Iterator[Figure]:
    for phase in PHASES:
        answers = [[ms for one in run[phase] if one.settled for ms in one.answered] for run in runs]
        yield Figure(f"service's answer, {phase}", "ms", answers)
    for name, unit, read in (("CPU share", "%", share), ("waiting", "ms/s", waiting)):
        for phase in PHASES:
            yield Figure(f"service's {name}, {phase}", unit, [[read(run[phase])] for run in runs])


def share(windows: Sequence[Window]) -> float:
    """Per cent of the time in which it wanted the CPU that it had it."""
    ran, waited, _ = _grown(windows)
    return ran / (ran + waited) * 100


def waiting(windows: Sequence[Window]) -> float:
    """Milliseconds in each second that it wanted the CPU and did not have it."""
    _, waited, seconds = _grown(windows)
    return waited / seconds * 1000


def _grown(windows: Sequence[Window]) -> tuple[float, float, float]:
    """CPU time, waiting time and time of what counts."""
    first, last = next(one for one in windows if one.settled), windows[-1]
    return last.ran - first.ran, last.waited - first.waited, last.at - first.at


def run(bench: Bench) -> Run:
    """One service through the three phases."""
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
    """The lab's image has no Python: it gets this machine's, to read."""
    program = Path(sys.executable).resolve()
    body = pod(name, (str(program), "-S", "-c", SERVICE.read_text()), cpu="1")
    places = {f"machine-{number}": place for number, place in enumerate(_python_places())}
    container = body["spec"]["containers"][0]
    container["volumeMounts"] = [
        {"name": volume, "mountPath": place, "readOnly": True} for volume, place in places.items()
    ]
    for amounts in container["resources"].values():
        amounts["memory"] = "64Mi"
    body["spec"]["volumes"] = [
        {"name": volume, "hostPath": {"path": place}} for volume, place in places.items()
    ]
    return body


def _python_places() -> list[str]:
    """The folders that this Python and its libraries are in."""
    known = {"/lib", "/lib64", "/usr", sys.base_prefix}
    return [place for place in sorted(known) if Path(place).exists()]


def _burstable(name: str) -> dict[str, Any]:
    body = pod(name, BUSY)
    requests = {"cpu": NEIGHBOUR_CPU, "memory": "8Mi"}
    body["spec"]["containers"][0]["resources"] = {"requests": requests}
    return body


def watch(process: Path, log: Path) -> list[Window]:
    """Look at the service for the length of a phase.

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
    windows: Sequence[Window], told: dict[float, tuple[float, ...]], start: float
) -> Iterator[Window]:
    """Each window with what the service said in it; without those in which it said nothing."""
    last = 0.0
    for one in windows:
        said = [
            ms for at, answered in told.items() if last < at - start <= one.at for ms in answered
        ]
        if said:
            yield Window(one.at, one.ran, one.waited, tuple(said))
            last = one.at


def answers(log: Path, since: float) -> dict[float, tuple[float, ...]]:
    """What the service printed since: milliseconds of each request, by the window's end.

    Source: CRI log format, `TIME STREAM TAGS TEXT`.
    """
    lines = log.read_text().splitlines() if log.exists() else []
    found = {}
    for line in lines:
        at, *answered = (float(word) for word in line.split()[3:])
        if at > since:
            found[at] = tuple(answered)
    return found
