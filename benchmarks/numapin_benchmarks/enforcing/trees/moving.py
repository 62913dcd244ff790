"""The run time that a busy loop loses when its container is moved to another CPU.

The enforcer's planner and writer move the cgroup of a loop that never sleeps: both CPUs first, then
the new one alone. Each spin has one such pass, or one that changes nothing, in its middle; the lost
time is the sum of the gaps around that moment. There is no cluster. The process that writes runs on
the new CPU, with ordinary priority, as a machine of two CPUs has no other; an enforcer runs on
neither.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Topology
from numapin_benchmarks.enforcing.trees import spinning
from numapin_benchmarks.enforcing.trees.cgroup_trees import OWNER, cgroups
from numapin_benchmarks.figures import Figure, in_runs
from numapin_benchmarks.surroundings import CGROUPFS
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.mounts import find_mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver, Qos
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.plan.writes.ordered import plan
from numapin_lab.errors import LabError

RUNS = 5
SPIN_SECONDS = 0.3
REST_SECONDS = 0.3
"""Between two spins, so that the kernel does not throttle real-time priority."""

BEFORE_SECONDS, AFTER_SECONDS = 0.01, 0.09
"""The gaps within these times of the beginning of a write count."""

BUDGET = "budget 5"
NOTHING, UNION, DROP = "no change", "both CPUs", "the old CPU leaves"


class Moving:
    """A busy loop in the container of a Guaranteed pod, and the enforcer's hand."""

    def __init__(self, files: Cgroupfs, naming: CgroupNaming, topology: Topology) -> None:
        self._files, self._naming, self._topology = files, naming, topology
        self._path = f"{naming.pod_path(Qos.GUARANTEED, 'owner')}/{OWNER}"

    def run(self, folder: Path, moves: int) -> dict[str, list[float]]:
        """Milliseconds that the loop loses at each step of so many moves, and without one."""
        first, second = (CpuSet([cpu]) for cpu in list(self._topology.online)[:2])
        found: dict[str, list[float]] = {NOTHING: [], UNION: [], DROP: []}
        self._give(first)
        with _spinning(folder) as loop:
            for number in range(moves):
                old, new = (second, first) if number % 2 else (first, second)
                os.sched_setaffinity(0, set(new))
                for name, cpus in ((NOTHING, old), (UNION, old | new), (DROP, new)):
                    found[name].append(_lost(loop, partial(self._give, cpus)))
                if os.sched_getaffinity(loop.pid) != set(new):
                    raise LabError(f"the loop is not on CPU {new}")
        return found

    def _give(self, cpus: CpuSet) -> None:
        """Make the container have these CPUs, as a pass of the enforcer does.

        The shared pool has them too: where there are two CPUs it would be empty otherwise.
        """
        own = ContainerAssignment(
            pod_uid="owner", namespace="d", pod="owner", container="c", cpus=cpus, exclusive=True
        )
        online = self._topology.online
        spec = NodeAssignmentSpec(pools=Pools(reserved=online, shared=online), containers=(own,))
        tree = self._files.read()
        wanted = desire(spec, tree, self._naming, {OWNER: "c"}, self._topology)
        outcome = apply(plan(tree, wanted).quick, self._files)
        if not outcome.complete:
            raise LabError(f"the kernel refused: {outcome.failed}")
        if (has := self._files.read().cgroups[self._path].cpus) != cpus:
            raise LabError(f"the container has CPUs {has}, not {cpus}")


@contextmanager
def _spinning(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The loop, in a cgroup."""
    pipe, command = subprocess.PIPE, [sys.executable, "-m", spinning.__name__]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as loop:
        try:
            (folder / "cgroup.procs").write_text(str(loop.pid))
            _ask(loop, 0.01)
            json.loads(_answer(loop))
            yield loop
        finally:
            loop.kill()


def _lost(loop: subprocess.Popen[str], act: Callable[[], None]) -> float:
    """Milliseconds that the loop loses around `act`, which is called in the middle of a spin."""
    time.sleep(REST_SECONDS)
    _ask(loop, SPIN_SECONDS)
    time.sleep(SPIN_SECONDS / 2)
    began = time.monotonic()
    act()
    gaps: list[tuple[float, float]] = json.loads(_answer(loop))
    earliest, latest = began - BEFORE_SECONDS, began + AFTER_SECONDS
    return 1000 * sum(seconds for at, seconds in gaps if earliest <= at <= latest)


def _ask(loop: subprocess.Popen[str], seconds: float) -> None:
    assert loop.stdin
    loop.stdin.write(f"{seconds}\n")
    loop.stdin.flush()


def _answer(loop: subprocess.Popen[str]) -> str:
    assert loop.stdout
    return loop.stdout.readline()


def measure(moves: int) -> Iterator[Figure]:
    """Move the loop so often.

    Raises:
        LabError: the machine has one CPU, or the kernel refused a write.
    """
    topology, mounts = discover(), find_mounts(CGROUPFS)
    if len(topology.online) < 2:
        raise LabError("a move needs two CPUs")
    naming = CgroupNaming(Driver.CGROUPFS, f"numapin-bench-{os.getpid()}")
    pod = naming.pod_path(Qos.GUARANTEED, "owner")
    paths = [naming.cgroup_root, naming.root, pod, f"{pod}/{OWNER}"]
    mine = os.sched_getaffinity(0)
    try:
        with cgroups(mounts, topology, paths) as made:
            moving = Moving(Cgroupfs(mounts, naming.root), naming, topology)
            found = moving.run(made[-1], moves)
    finally:
        os.sched_setaffinity(0, mine)
    for name, lost in found.items():
        limit = "" if name == NOTHING else BUDGET
        yield Figure(f"busy loop loses: {name}", "ms", in_runs(lost, RUNS), limit)
