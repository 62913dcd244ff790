"""CPU time of one enforcer while much or nothing happens, and the time until a newborn is fenced.

etcd, kube-apiserver and this machine's cgroups are real. The pods are only cgroups without
processes; the enforcer treats them like any others. No container runtime answers: it would be asked
only about the pod with the exclusive container. Each number of pods is measured with the same
enforcer: more pods are added. At the end some of them make cgroups inside their containers.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from numapin_benchmarks.enforcing.trees import weight
from numapin_benchmarks.figures import Figure
from numapin_benchmarks.surroundings import CGROUPFS, progress
from numapin_campaigns.recording.observer import real_time
from numapin_enforcer.cgroups.mounts import find_mounts
from numapin_lab.node.containerd import Runtime
from numapin_lab.processes import usage
from numapin_lab.processes.daemons import wait_until

NEWBORNS, STARTS = 100, 30
CROWDED, NESTED = 40, 500
"""So many pods have so many cgroups inside a container at the end."""

IDLE_SECONDS, STORM_SECONDS = 20.0, 5.0
BURST_SECONDS = 4.0
"""What a storm may take in full before it is bounded; not measured."""

LIMIT_SECONDS = 5.0
EVENTS_PER_SECOND = 1_000

IRRELEVANT = """
import os, sys, time
files = [os.open(path, os.O_WRONLY) for path in sys.argv[3:]]
end, pause = time.monotonic() + float(sys.argv[1]), 1 / float(sys.argv[2])
due = time.monotonic()
while time.monotonic() < end:
    for file in files:
        os.write(file, b"0\\n")
        due += pause
        time.sleep(max(0.0, due - time.monotonic()))
"""
HOSTILE = """
import os, sys, time
os.nice(5)
end, folder = time.monotonic() + float(sys.argv[1]), sys.argv[3]
file = os.open(f"{folder}/cpuset.cpus", os.O_WRONLY)
own = open(f"{folder}/cpuset.cpus").read().encode()
while time.monotonic() < end:
    os.mkdir(f"{folder}/storm")
    os.rmdir(f"{folder}/storm")
    for _ in range(10):
        os.write(file, own)
"""


@dataclass(frozen=True)
class Target:
    """The process under test and the cgroups that it watches."""

    pid: int
    kubepods: Path
    pods: Sequence[str]

    def container(self, number: int) -> Path:
        """The cgroup of a container of a best-effort pod."""
        pod = self.kubepods / "besteffort" / f"pod{self.pods[2 * number]}"
        return next(one for one in pod.iterdir() if one.is_dir())

    def cpu_percent(self, seconds: float) -> float:
        """The part of one CPU that the process takes for so long."""
        began, before = time.monotonic(), cpu_seconds(self.pid)
        time.sleep(seconds)
        return (cpu_seconds(self.pid) - before) / (time.monotonic() - began) * 100


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads. Source: Documentation/scheduler/sched-stats.rst, schedstat."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in tasks) / 1e9


def measure(counts: Sequence[int]) -> Iterator[Figure]:
    """Measure with each number of pods, the smallest first."""
    with tempfile.TemporaryDirectory(prefix="numapin-bench-") as name:
        folder = Path(name)
        with weight.parts(folder) as (plane, runtime):
            root = runtime.cgroup.path
            kubepods = find_mounts(CGROUPFS).cpuset / root.strip("/") / "kubepods"
            uids = weight.make_pods(root, counts[0])
            make_owner(kubepods / f"pod{uids[1]}")
            silent = cast("Runtime", SimpleNamespace(socket=folder / "none", cgroup=runtime.cgroup))
            with weight.enforcer(plane, silent, folder) as pid:
                generation = weight.assign(plane, uids[1])
                wait_until(
                    lambda: weight.observed(plane) >= generation, "a report", weight.WAIT_SECONDS
                )
                for count in counts:
                    uids += weight.make_pods(root, count - len(uids))
                    time.sleep(2 * BURST_SECONDS)
                    target = Target(pid, kubepods, uids)
                    yield from figures(target)
                yield from among_nested(target)


def make_owner(pod: Path) -> None:
    """Give one container of the pod CPU 1, so that it is taken for the exclusive one."""
    container = next(one for one in pod.iterdir() if one.is_dir())
    (container / "cpuset.cpus").write_text("1\n")


def figures(target: Target) -> Iterator[Figure]:
    """Everything for one number of pods."""
    subject = f"{len(target.pods)} pods"
    progress(f"  {subject}")
    fenced = [newborn(target, number)[0] for number in range(NEWBORNS)]
    yield Figure(f"{subject}: newborn fenced", "ms", [fenced], "budget p99 < 1")
    yield _one(f"{subject}: idle, of a CPU", "%", target.cpu_percent(IDLE_SECONDS), "budget 0.2")
    yield _one(f"{subject}: CPU for a start and stop", "ms", starts(target), "budget 10")
    times = str(STORM_SECONDS + BURST_SECONDS)
    files = [str(target.container(number) / "notify_on_release") for number in range(3)]
    irrelevant = [IRRELEVANT, times, str(EVENTS_PER_SECOND), *files]
    name = f"{subject}: {EVENTS_PER_SECOND} irrelevant events a second"
    yield _one(name, "%", storm(target, irrelevant), "budget 2")
    hostile = [HOSTILE, times, "0", str(target.container(0).parent)]
    yield _one(f"{subject}: hostile storm, of a CPU", "%", storm(target, hostile), "budget 30")
    yield _one(f"{subject}: RSS", "MiB", usage.resident_mib(target.pid), "budget 50")


def among_nested(target: Target) -> Iterator[Figure]:
    """What cgroups inside containers do to new pods, and to the enforcer."""
    subject = f"{CROWDED} pods with {NESTED} cgroups inside"
    progress(f"  {subject}")
    began, before = time.monotonic(), cpu_seconds(target.pid)
    for number in range(CROWDED):
        make_nested(target.container(number))
    fenced = [newborn(target, NEWBORNS + number) for number in range(NEWBORNS)]
    used_percent = (cpu_seconds(target.pid) - before) / (time.monotonic() - began) * 100
    yield Figure(f"{subject}: newborn fenced", "ms", [[one for one, _ in fenced]])
    yield Figure(f"{subject}: after it was made", "ms", [[late for _, late in fenced]], "budget 12")
    yield _one(f"{subject}: CPU meanwhile", "%", used_percent, "budget 30")
    time.sleep(2 * BURST_SECONDS)
    yield _one(f"{subject}: idle, of a CPU", "%", target.cpu_percent(IDLE_SECONDS), "")
    yield _one(f"{subject}: RSS", "MiB", usage.resident_mib(target.pid), "limit 120")


def make_nested(container: Path) -> None:
    """Cgroups inside a container, with its CPUs and memory."""
    for name, value in (("cgroup.clone_children", "1"), ("cgroup.subtree_control", "+cpuset")):
        if (container / name).exists():  # the first is of cgroup v1
            (container / name).write_text(value)
    for number in range(NESTED):
        (container / str(number)).mkdir()


def _one(name: str, unit: str, value: float, limit: str) -> Figure:
    return Figure(name, unit, [[value]], limit)


def newborn(target: Target, number: int) -> tuple[float, float]:
    """Milliseconds until a Guaranteed pod's cgroup has the pool.

    Returns:
        Those from its creation on, and those after the last write that makes it usable. On v1 with
        thousands of cgroups the kernel needs milliseconds for each write, whoever makes it.
    """
    pod = target.kubepods / f"podnew-{number}"
    time.sleep(0.05)
    with real_time(), cgroup(pod):
        began = time.monotonic()
        for name in ("cpuset.mems", "cpuset.cpus"):
            if not (pod / name).read_text().strip():
                (pod / name).write_text((pod.parent / name).read_text())
        made = time.monotonic()
        while (pod / "cpuset.cpus").read_text().strip() != "0":
            if time.monotonic() - began > LIMIT_SECONDS:
                return float("inf"), float("inf")
            time.sleep(0.0001)
        now = time.monotonic()
        return (now - began) * 1000, (now - made) * 1000


def starts(target: Target) -> float:
    """Milliseconds of CPU time for one container that starts and stops."""
    before = cpu_seconds(target.pid)
    for number in range(STARTS):
        with cgroup(target.container(0).parent / f"{number:064x}") as made:
            time.sleep(0.03)
            for name in ("cpuset.mems", "cpuset.cpus"):
                (made / name).write_text((made.parent / name).read_text())
            time.sleep(0.03)
        time.sleep(0.05)
    return (cpu_seconds(target.pid) - before) / STARTS * 1000


def storm(target: Target, program: Sequence[str]) -> float:
    """The part of one CPU that the enforcer takes while a program writes to cgroups."""
    writer = subprocess.Popen([sys.executable, "-c", *program])
    time.sleep(BURST_SECONDS)
    percent = target.cpu_percent(STORM_SECONDS - 1)
    writer.wait()
    time.sleep(BURST_SECONDS)
    return percent


@contextmanager
def cgroup(folder: Path) -> Iterator[Path]:
    """A cgroup that is removed at the end."""
    folder.mkdir()
    try:
        yield folder
    finally:
        folder.rmdir()
