"""How long fencing takes: 100 shared containers leave a CPU that one container is to own.

Runs as root on a real kernel, in cgroups of its own that are gone at the end: 50 pods of two
containers, each with a sleeping process, and one Guaranteed pod. Each round reads the tree, plans,
writes, and goes back. `python benchmarks/enforcing_plan.py [ROUNDS]`.
"""

import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.nodeassignment import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Topology
from numapin_enforcer.apply import apply
from numapin_enforcer.cgroupfs import Cgroupfs, Mounts, find_mounts
from numapin_enforcer.cgroups import Cgroup, Step, Tree, Version, Write, tree_of
from numapin_enforcer.desired import desire
from numapin_enforcer.layout import Driver, Layout, Qos
from numapin_enforcer.plan import Plan, plan
from numapin_enforcer.sysfs import discover

PODS = 50
OWNER = "f" * 64
BUDGET_MS = {Version.V1: 20.0, Version.V2: 2.0}


def paths(layout: Layout) -> list[str]:
    """The tree: QoS classes, shared pods with a sandbox and two containers, the owner's pod."""
    found = [layout.root, layout.qos_path(Qos.BURSTABLE), layout.qos_path(Qos.BEST_EFFORT)]
    for index in range(PODS):
        qos = Qos.BURSTABLE if index % 2 else Qos.BEST_EFFORT
        pod = layout.pod_path(qos, f"shared-{index}")
        found += [pod, *(f"{pod}/{index * 3 + one:064x}" for one in range(3))]
    pod = layout.pod_path(Qos.GUARANTEED, "owner")
    return [*found, pod, f"{pod}/{'e' * 64}", f"{pod}/{OWNER}"]


def spec(topology: Topology, *, fenced: bool) -> NodeAssignmentSpec:
    """Everybody on everything, or all but the owner off the last CPU."""
    own = CpuSet([max(topology.online)]) if fenced else CpuSet()
    shared = topology.online - own
    owner = ContainerAssignment(
        pod_uid="owner", namespace="d", pod="owner", container="c", cpus=own, exclusive=fenced
    )
    return NodeAssignmentSpec(
        pools=Pools(reserved=CpuSet(list(shared)[:1]), shared=shared), containers=(owner,)
    )


@contextmanager
def pods(mounts: Mounts, topology: Topology) -> Iterator[Layout]:
    """The tree in the kernel, a process in every container; all of it is removed at the end."""
    layout = Layout(Driver.CGROUPFS, f"numapin-bench-{secrets.token_hex(4)}")
    made = [mounts.cpuset / layout.cgroup_root, *(mounts.cpuset / one for one in paths(layout))]
    sleepers: list[subprocess.Popen[bytes]] = []
    try:
        for folder in made:
            make(mounts.version, folder, topology)
            if len(folder.name) == 64:
                sleepers.append(subprocess.Popen(["sleep", "3600"]))
                (folder / "cgroup.procs").write_text(str(sleepers[-1].pid))
        yield layout
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
        for folder in reversed(made):
            folder.rmdir()


def make(version: Version, folder: Path, topology: Topology) -> None:
    """One cgroup with everything its parent has."""
    if version is Version.V2:
        (folder.parent / "cgroup.subtree_control").write_text("+cpuset")
    folder.mkdir()
    if version is Version.V1:
        (folder / "cpuset.cpus").write_text(str(topology.online))
        (folder / "cpuset.mems").write_text(str(topology.mems))


T = TypeVar("T")


def timed(times: list[float], act: Callable[[], T]) -> T:
    """What `act` returns; its milliseconds go into `times`."""
    start = time.perf_counter()
    result = act()
    times.append((time.perf_counter() - start) * 1e3)
    return result


def told(name: str, times: list[float], budget: str = "") -> None:
    """One line: minimum, median, 99th percentile and maximum of milliseconds."""
    ordered = sorted(times)
    last = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(
        f"{name:34} min {ordered[0]:7.2f}  median {statistics.median(ordered):7.2f}"
        f"  p99 {last:7.2f}  max {ordered[-1]:7.2f} ms  {budget}"
    )


class Bench:
    """Fences and unfences, and keeps what each part took."""

    def __init__(self, files: Cgroupfs, layout: Layout, topology: Topology) -> None:
        self._files, self._layout, self._topology = files, layout, topology
        self.reading: list[float] = []
        self.planning: list[float] = []
        self.writing: list[float] = []
        self.both: list[float] = []
        self.writes = 0

    def plan(self, tree: Tree, *, fenced: bool) -> Plan:
        """What one pass decides."""
        wanted = desire(
            spec(self._topology, fenced=fenced), tree, self._layout, {OWNER: "c"}, self._topology
        )
        return plan(tree, wanted)

    def round(self) -> None:
        """Fence with the clock running, then go back."""
        tree = timed(self.reading, self._files.read)
        planned = timed(self.planning, lambda: self.plan(tree, fenced=True))
        outcome = timed(self.writing, lambda: apply(planned.quick, self._files))
        self.both.append(self.planning[-1] + self.writing[-1])
        if not outcome.complete:
            raise SystemExit(f"not fenced: {outcome.failed}")
        self.writes = len(planned.quick)
        apply(self.plan(self._files.read(), fenced=False).writes, self._files)


def bare_write(files: Cgroupfs, layout: Layout, topology: Topology) -> list[float]:
    """The floor: one write that changes one container's set, alone."""
    times: list[float] = []
    path = paths(layout)[-1]
    narrow, wide = CpuSet([max(topology.online)]), topology.online
    for value in (narrow, wide) * 100:
        write = Write(path, value, Step.NARROW)
        timed(times, partial(files.write, write))
    return times


def cpusets() -> int:
    """How many cgroups with a cpuset there are; on v1 the kernel goes through all at each write."""
    lines = Path("/proc/cgroups").read_text().splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith("cpuset\t"))


def inherited(layout: Layout, topology: Topology) -> Tree:
    """The same tree on v2 before anything was set: nobody asked, all inherit."""
    cgroups = (
        Cgroup(path, CpuSet(), MemSet(), topology.online, topology.mems) for path in paths(layout)
    )
    return tree_of(Version.V2, layout.root, cgroups)


def main() -> None:
    """Run the rounds and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    topology = discover()
    mounts = find_mounts(Path("/sys/fs/cgroup"))
    with pods(mounts, topology) as layout:
        files = Cgroupfs(mounts, layout.root)
        bench = Bench(files, layout, topology)
        for _ in range(rounds):
            bench.round()
        count = len(files.read().cgroups)
        print(f"cgroup v{mounts.version}, {count} cgroups, {bench.writes} writes, {rounds} rounds")
        print(f"cpusets on this machine: {cpusets()} (a write on v1 looks at each of them)")
        told("read the whole tree", bench.reading)
        told("decide and plan", bench.planning)
        told("write", bench.writing)
        told("fence (plan + write)", bench.both, f"budget {BUDGET_MS[mounts.version]} ms")
        told("one write alone", bare_write(files, layout, topology))
        tree, times = inherited(layout, topology), list[float]()
        for _ in range(rounds):
            planned = timed(times, lambda: bench.plan(tree, fenced=True))
        told(
            f"plan for v2 ({len(planned.quick)} writes)",
            times,
            f"budget {BUDGET_MS[Version.V2]} ms",
        )


if __name__ == "__main__":
    main()
