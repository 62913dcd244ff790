"""An agent on a manual clock: real parts over a model of the kernel, fakes of what is outside."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_client.resources import Json, Key, Resource
from numapin_daemon.probes.health import LoopHealth
from numapin_enforcer.agent import RETRY_SECONDS, Agent
from numapin_enforcer.assignment.acceptance import Acceptance
from numapin_enforcer.assignment.local_copy import LocalCopy, LocalCopyWriter
from numapin_enforcer.cgroups.naming import Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.node.heartbeat import Progress
from numapin_enforcer.node.kubelet_checkpoint import KubeletPins
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.passes.enforcing import Enforcing
from numapin_enforcer.passes.inputs import Inputs
from numapin_enforcer.passes.watched_pods import WatchedPods
from numapin_enforcer.schedule import Schedule
from numapin_enforcer.status.in_force.summary import Summary
from numapin_enforcer.status.publisher import Publisher
from numapin_enforcer.status.reporter import StatusReporter
from numapin_enforcer.telemetry.samples.foreign_tasks import ForeignTasks
from numapin_enforcer.threads.check import ThreadCheck
from support.fakes.kernels.cpu_times import Times
from support.fakes.kernels.new_pods import NewPods
from support.fakes.kernels.pods import Events, ModelFinder, model_pods
from support.fakes.kernels.threads import ModelThreads
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.systemd import FakeSystemd
from support.fakes.worlds.follower_parts import Outer

MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)
ID = "a" * 64
POD, CONTAINER = "kubepods/podexclusive", f"kubepods/podexclusive/{ID}"
BODY: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "u1", "generation": 1},
    "spec": {
        "pools": {"reserved": "0", "shared": "0-2"},
        "containers": [
            {
                "podUID": "exclusive",
                "namespace": "d",
                "pod": "p",
                "container": "c",
                "cpus": "3",
                "exclusive": True,
            }
        ],
    },
}


@dataclass
class Assignments:
    """What the API server has."""

    body: Mapping[str, Any] | None = field(default_factory=lambda: BODY)
    gone: bool = False
    received_at: float = 0.0
    problem: str = ""


@dataclass
class Hardware:
    """A machine that stays as it is."""

    topology: Topology = MACHINE
    limits: str = ""

    def rescan(self, *, pages: bool = False) -> bool:
        return False

    def free_hugepages(self) -> dict[int, dict[str, int]]:
        return {}


class NoApi:
    """Nothing is written: no test of the loop runs the publisher."""

    async def merge_patch(
        self,
        resource: Resource,
        key: Key,
        patch: Json,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Json:
        raise NotImplementedError


class World:
    """An agent whose one container has a name from the start."""

    def __init__(self, descriptor: int, folder: Path, new_pods: NewPods) -> None:
        self.folder, self.new_pods = folder, new_pods
        self.model = WatchedModel(Version.V2, CpuSet(range(4)), MemSet((0, 1)))
        for path in (POD, CONTAINER):
            self.model.make(path)
        self.model.enter(CONTAINER)
        self.threads, self.times = ModelThreads(self.model), Times()
        self.events = Events(self.model, descriptor)
        pods = model_pods(self.model, Driver.CGROUPFS, self.events, new_pods)
        self.kubepods, self.assignments = ModelFinder(pods), Assignments()
        self.clock, self.wake, self.runtime = ManualClock(), asyncio.Event(), FakeRuntime()
        self.runtime.has(ID, "c")
        outer = Outer(self.kubepods, self.runtime, FakeSystemd(), folder, self.wake, self.clock)
        self.posted, self.saved_mems, self.passes = outer.posted, outer.saved_mems, list[Pass]()
        self.followers = outer.followers()
        self.names = self.followers.containers.names
        self.names.known = {ID: "c"}
        self.copy = LocalCopy(folder, "n")
        self.inputs = Inputs(
            assignments=self.assignments,
            acceptance=Acceptance("n"),
            local_copy=LocalCopyWriter(self.copy, None, self.wake, self.clock),
            machine=Hardware(),
            kubelet=KubeletPins(folder),
            kubepods=self.kubepods,
            events=self.posted,
        )
        self.health = LoopHealth(60, self.clock)
        publisher = Publisher(NoApi(), "n", self.clock)
        publisher.observe_report(None)
        self.reporter = StatusReporter(publisher, self.health)
        self.reporter.on_pass = (self._passed,)
        self.agent = self._agent()
        self.enforcing = self.agent.enforcing

    def _agent(self) -> Agent:
        schedule, gate = Schedule(10.0, RETRY_SECONDS), self.followers.memory.mover.gate
        pods = WatchedPods(
            self.kubepods, gate, lambda: self.names.known, self.wake, schedule, self.clock
        )
        enforcing = Enforcing(
            self.inputs.acceptance,
            self.inputs.local_copy,
            pods,
            ThreadCheck(self.threads, self.clock),
            ForeignTasks(self.times, self.clock),
        )
        return Agent(
            self.inputs,
            pods,
            enforcing,
            self.followers,
            self.reporter,
            schedule,
            self.clock,
            Progress(self.clock.monotonic),
        )

    def _passed(self, one: Pass, _summary: Summary | None) -> None:
        self.passes.append(one)

    @property
    def last(self) -> Pass:
        return self.passes[-1]

    @property
    def missing(self) -> dict[str, str]:
        """What /readyz says."""
        return dict(self.health.health().missing())

    @property
    def cpus(self) -> str:
        return str(self.model.read().cgroups[CONTAINER].effective_cpus)

    async def saved(self, mode: str) -> bool:
        """Whether a spec of this mode is on disk as soon as all that is wanted is."""
        await self.clock.until(lambda: self.inputs.local_copy.restart_spec is None)
        found = self.copy.read()
        return found is not None and found.spec.mode == mode
