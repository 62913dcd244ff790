"""Time to move 100 shared containers off a CPU that becomes exclusive.

It uses private cgroups with a sleeping process in every container, and no cluster. Each round reads
the tree, plans and writes, and then reverts everything in one of two ways. On v1 the kernel visits
every cpuset of the machine for each write, so the fence is also measured with additional cpusets.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import Topology
from numapin_benchmarks.enforcing.trees.cgroup_trees import OWNER, others, pods
from numapin_benchmarks.figures import Figure
from numapin_benchmarks.surroundings import CGROUPFS, progress
from numapin_campaigns.recording.observer import real_time
from numapin_enforcer.cgroups.apply import apply
from numapin_enforcer.cgroups.cgroupfs import Cgroupfs
from numapin_enforcer.cgroups.mounts import Mounts, find_mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Qos
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.cgroups.write import Step, Write
from numapin_enforcer.hardware.discovery import discover
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.plan.desired import desire, release
from numapin_enforcer.plan.writes.ordered import plan
from numapin_lab.errors import LabError

RUNS = 5
BUDGETS = {Version.V1: "budget 10", Version.V2: "budget 2"}
FOREIGN = (0, 250, 1000)
READING, PLANNING = "read the whole tree", "decide and plan"
FENCE = "fence: plan and write"
WIDEN, RELEASE = "widen again: plan and write", "release all: plan and write"
Times = dict[str, list[float]]
T = TypeVar("T")


class Timed:
    """The kernel's tree; measures the milliseconds of writing for each step."""

    def __init__(self, files: Cgroupfs) -> None:
        self._files = files
        self.spent: dict[Step, float] = {}

    def read(self) -> Tree:
        """The tree as it is."""
        return self._files.read()

    def read_effective_cpus(self, path: str) -> CpuSet:
        """What one cgroup has."""
        return self._files.read_effective_cpus(path)

    def write(self, write: Write) -> None:
        """Make one write and add its time."""
        took, _ = timed(lambda: self._files.write(write))
        self.spent[write.step] = self.spent.get(write.step, 0.0) + took


def timed(act: Callable[[], T]) -> tuple[float, T]:
    """The milliseconds that `act` takes, and its result."""
    start = time.perf_counter()
    result = act()
    return (time.perf_counter() - start) * 1000, result


class Fencing:
    """Fences, widens and releases, and measures each of them."""

    def __init__(self, files: Cgroupfs, naming: CgroupNaming, topology: Topology) -> None:
        self._files, self._naming, self._topology = files, naming, topology
        self._own = CpuSet([max(topology.online)])

    def run(self, rounds: int) -> Times:
        """Milliseconds of every step, measured `rounds` times."""
        found: Times = {}
        for number in range(rounds):
            name, back = (WIDEN, self._widen) if number % 2 else (RELEASE, self._release)
            took = self._pass(self._fence) | {name: self._pass(back)[FENCE]}
            for key, value in took.items():
                found.setdefault(key, []).append(value)
        return found

    def _pass(self, wanted: Callable[[Tree], dict[str, Desired]]) -> dict[str, float]:
        """Read, plan, write."""
        reading, tree = timed(self._files.read)
        planning, planned = timed(lambda: plan(tree, wanted(tree)))
        files = Timed(self._files)
        outcome = apply(planned.quick, files)
        if not outcome.complete:
            raise LabError(f"the kernel refused: {outcome.failed}")
        took = {READING: reading, PLANNING: planning, FENCE: planning + sum(files.spent.values())}
        return took | {f"{step.lower()}: write": spent for step, spent in files.spent.items()}

    def grant(self) -> float:
        """Milliseconds to grant the exclusive CPU after all other containers have left it."""
        path = f"{self._naming.pod_path(Qos.GUARANTEED, 'owner')}/{OWNER}"
        everything = Write(path, self._topology.online, Step.WIDEN)
        took, _ = timed(lambda: self._files.write(Write(path, self._own, Step.GRANT)))
        self._files.write(everything)
        return took

    def plan_inherited(self) -> float:
        """Milliseconds to plan the fence on v2, where all cgroups inherit their sets."""
        online, mems = self._topology.online, self._topology.mems
        bare = [
            Cgroup(path, CpuSet(), MemSet(), online, mems) for path in self._files.read().cgroups
        ]
        tree = tree_of(Version.V2, self._naming.root, bare)
        return timed(lambda: plan(tree, self._fence(tree)))[0]

    def _fence(self, tree: Tree) -> dict[str, Desired]:
        return self._wanted(tree, self._own)

    def _widen(self, tree: Tree) -> dict[str, Desired]:
        return self._wanted(tree, CpuSet())

    def _release(self, tree: Tree) -> dict[str, Desired]:
        return release(tree, self._topology)

    def _wanted(self, tree: Tree, own: CpuSet) -> dict[str, Desired]:
        """All cgroups on all CPUs; with `own`, only the exclusive container on those."""
        shared = self._topology.online - own
        owner = ContainerAssignment(
            pod_uid="owner",
            namespace="d",
            pod="owner",
            container="c",
            cpus=own,
            exclusive=bool(own),
        )
        pools = Pools(reserved=CpuSet(list(shared)[:1]), shared=shared)
        spec = NodeAssignmentSpec(pools=pools, containers=(owner,) if own else ())
        return desire(spec, tree, self._naming, {OWNER: "c"}, self._topology)


def measure(rounds: int) -> Iterator[Figure]:
    """Run all measurements on this machine's cgroups."""
    topology, mounts = discover(), find_mounts(CGROUPFS)
    with pods(mounts, topology) as naming, real_time():  # as the enforcer does
        fencing = Fencing(Cgroupfs(mounts, naming.root), naming, topology)
        runs = [fencing.run(rounds) for _ in range(RUNS)]
        for name in runs[0]:
            limit = BUDGETS[mounts.version] if name == FENCE else ""
            yield Figure(name, "ms", [one[name] for one in runs], limit)
        grants = [[fencing.grant() for _ in range(rounds)] for _ in range(RUNS)]
        yield Figure("grant: one write, one container", "ms", grants)
        plans = [[fencing.plan_inherited() for _ in range(rounds)] for _ in range(RUNS)]
        yield Figure("decide and plan as on v2", "ms", plans, BUDGETS[Version.V2])
        yield from _among(fencing, mounts, topology, rounds)


def _among(fencing: Fencing, mounts: Mounts, topology: Topology, rounds: int) -> Iterator[Figure]:
    """Measure the fence with additional cpusets on the machine."""
    for count in FOREIGN:
        with others(mounts, topology, count):
            total = cpusets()
            progress(f"  among {total} cpusets")
            runs = [fencing.run(rounds)[FENCE] for _ in range(RUNS)]
        yield Figure(f"fence, {total} cpusets on the machine", "ms", runs)


def cpusets() -> int:
    """The number of cpuset cgroups on the machine."""
    lines = Path("/proc/cgroups").read_text().splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith("cpuset\t"))
