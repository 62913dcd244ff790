"""A reporter whose node accepted an assignment, with real inputs, and trees that a test makes."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_daemon.probes.health import LoopHealth
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopy, LocalCopyWriter
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import Cgroup, Tree, Version, tree_of
from numapin_enforcer.node.kubelet_checkpoint import KubeletPins
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.passes.inputs import Inputs
from numapin_enforcer.plan.desired import desire
from numapin_enforcer.runtime.interface import RuntimeVersion
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.report import Report
from numapin_enforcer.status.reporter import StatusReporter
from numapin_enforcer.status.state import States
from support.fakes.kernels.pods import Events, ModelFinder, model_pods
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.systemd import FakeSystemd
from support.fakes.worlds.agent_world import Assignments, Hardware, NoApi
from support.fakes.worlds.follower_parts import Outer

ID = "a" * 64
ROOT, POD = "kubepods", "kubepods/pod1"
CONTAINER = f"{POD}/{ID}"
NAMING, MEMS = CgroupNaming(Driver.CGROUPFS), MemSet((0,))
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30),),
)
CONTAINERS = [
    {
        "podUID": "1",
        "namespace": "d",
        "pod": "p",
        "container": "c",
        "cpus": "3",
        "exclusive": True,
    }
]
BODY: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u1", "generation": 1},
    "spec": {"pools": {"reserved": "0", "shared": "0-2"}, "containers": CONTAINERS},
    "status": {"driftCount": 7},
}


def cgroup(path: str, cpus: str) -> Cgroup:
    found = CpuSet.parse(cpus)
    return Cgroup(path, found, MEMS, found, MEMS)


TREE = tree_of(Version.V2, ROOT, [cgroup(ROOT, "0-3"), cgroup(POD, "0-3"), cgroup(CONTAINER, "3")])


class Model(WatchedModel):
    """Every cgroup has processes but those in `empty`."""

    def __init__(self) -> None:
        super().__init__(Version.V2, CpuSet(range(4)), MEMS)
        self.empty: set[str] = set()

    def has_tasks(self, path: str) -> bool:
        return path not in self.empty


class Published(Publisher):
    """Remembers what it must write."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(NoApi(), "n", clock)
        self.reports: list[Report] = []
        self.passes = 0

    def publish(self, report: Report) -> None:
        self.reports.append(report)

    def passed(self) -> None:
        self.passes += 1


class World:
    """A reporter whose node accepted an assignment of CPU 3."""

    def __init__(self) -> None:
        self.clock, self.model = ManualClock(), Model()
        self.watch = Events(self.model)
        self.pods = model_pods(self.model, Driver.CGROUPFS, self.watch)
        self.kubepods, folder = ModelFinder(self.pods), Path("/nonexistent")
        self.kubepods.open()
        outer = Outer(
            self.kubepods, FakeRuntime(), FakeSystemd(), folder, asyncio.Event(), self.clock
        )
        self.followers, self.posted = outer.followers(), outer.posted
        self.followers.containers.names.runtime_version = RuntimeVersion("containerd", "v2")
        self.acceptance, self.machine = Acceptance("n"), Hardware(MACHINE)
        self.acceptance.offer(BODY, MACHINE)
        accepted = self.acceptance.accepted
        self.inputs = Inputs(
            assignments=Assignments(BODY),
            acceptance=self.acceptance,
            local_copy=LocalCopyWriter(LocalCopy(folder, "n"), accepted, asyncio.Event()),
            machine=self.machine,
            kubelet=KubeletPins(folder),
            kubepods=self.kubepods,
            events=self.posted,
            boot_id="boot-1",
        )
        self.published, self.health = Published(self.clock), LoopHealth(60, self.clock)
        self.reporter = StatusReporter(self.published, self.health)
        self.population = self.followers.observed.population

    def begin(self, tree: Tree | None = TREE, failed_passes: int = 0, **changes: Any) -> Pass:
        """A pass that found `tree`; so many passes in a row have failed."""
        one = self.inputs.begin(self.clock.monotonic(), full_resync=False, failed_before=0)
        desired = {}
        if tree is not None and one.spec is not None:
            desired = desire(one.spec, tree, NAMING, {ID: "c"}, MACHINE)
        result = Converged(tree, desired, complete=not failed_passes)
        before = max(failed_passes - 1, 0)
        naming = NAMING if self.kubepods.tree is not None else None
        return replace(one, naming=naming, result=result, failed_before=before, **changes)

    def report(
        self, one: Pass | None = None, states: States | None = None, **facts: Any
    ) -> tuple[str, str]:
        """Report a pass; returns reason and message of Ready."""
        one = one or self.begin()
        self.followers.observed.follow(one)
        known = replace(self.followers.facts(one, self.inputs.facts()), **facts)
        self.reporter.report(one, known, {**self.inputs.states(), **(states or {})})
        ready = next(each for each in self.last.verdicts if each.type == "Ready")
        return ready.reason, ready.message

    @property
    def last(self) -> Report:
        return self.published.reports[-1]

    @property
    def missing(self) -> dict[str, str]:
        return dict(self.health.health().missing())

    @property
    def exclusive(self) -> list[bool]:
        return [one.exclusive for one in self.last.content.containers]

    def recheck_seconds(self) -> list[float]:
        return self.followers.recheck_seconds()
