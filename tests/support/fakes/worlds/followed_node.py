"""A node whose passes are followed: models of kernel, runtime and systemd."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from numapin_api.conditions.reasons import Obstacle
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import WatchedModel
from numapin_enforcer.cgroups.naming import Driver
from numapin_enforcer.cgroups.tree import Version
from numapin_enforcer.cgroups.write import Quota, Step, Write
from numapin_enforcer.pass_values import Converged, Pass
from numapin_enforcer.passes.enforcing import goal_of
from numapin_enforcer.reconciler import Reconciler
from numapin_enforcer.runtime.interface import ContainerResources
from numapin_enforcer.status.facts import Facts
from numapin_enforcer.status.state import State, in_order
from support.fakes.kernels.pods import ModelFinder, model_pods
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.systemd import FakeSystemd
from support.fakes.worlds.follower_parts import Outer, start_updaters

ID = "a" * 64
ROOT = "kubepods.slice"
POD = f"{ROOT}/kubepods-pod1.slice"
CONTAINER = f"{POD}/cri-containerd-{ID}.scope"
BURSTABLE = f"{ROOT}/kubepods-burstable.slice"
ALL, MEMS = CpuSet(range(4)), MemSet((0, 1))
LIMIT, NO_LIMIT = Quota(200_000), Quota(None)
MOVE = Write(CONTAINER, MEMS, Step.MOVE_MEMORY, may_block=True)
MACHINE = Topology(
    cpus=tuple(Cpu(cpu, cpu, 0, NO_CACHE, 0) for cpu in range(4)),
    numa_nodes=(NumaNode(0, 1 << 30), NumaNode(1, 1 << 30)),
)


def spec_of(
    cpus: str, cpu_quota: Literal["Keep", "Unlimited"] = "Keep", mems: str = ""
) -> NodeAssignmentSpec:
    """Container c of pod 1 has `cpus` exclusively, and memory of `mems`."""
    exclusive = CpuSet.parse(cpus)
    container = ContainerAssignment(
        pod_uid="1",
        namespace="d",
        pod="p",
        container="c",
        cpus=exclusive,
        mems=MemSet.parse(mems),
        exclusive=True,
    )
    pools = Pools(reserved=CpuSet((0,)), shared=ALL - exclusive)
    return NodeAssignmentSpec(pools=pools, containers=(container,), cpu_quota=cpu_quota)


CPU_2, CPU_3 = spec_of("2"), spec_of("3")


class Node:
    """Pod 1 with one container; passes enforce a spec, and all followers follow."""

    def __init__(
        self,
        folder: Path,
        runtime: FakeRuntime,
        wake: asyncio.Event,
        previous: NodeAssignmentSpec | None = None,
    ) -> None:
        self.model = WatchedModel(Version.V2, ALL, MEMS, root=ROOT)
        for path in (BURSTABLE, POD, CONTAINER):
            self.model.make(path)
        self.model.enter(CONTAINER)
        self.model.groups[CONTAINER].quota = LIMIT
        self.runtime, self.systemd, self.clock = runtime, FakeSystemd(BURSTABLE), ManualClock()
        runtime.has(ID, "c")
        runtime.on_update = self._written_by_runtime
        self.pods = model_pods(self.model, Driver.SYSTEMD)
        kubepods = ModelFinder(self.pods)
        kubepods.open()
        self.reconciler = Reconciler(self.model, self.pods.snapshot, self.pods.naming)
        outer = Outer(kubepods, runtime, self.systemd, folder, wake, self.clock)
        self.followers, self.posted = outer.followers(previous), outer.posted
        self.host = outer.host
        self.last = self.begin(None)

    def start(self, start: Callable[[Awaitable[None]], None]) -> None:
        start_updaters(self.followers, start)

    def begin(self, spec: NodeAssignmentSpec | None, *, full: bool = False) -> Pass:
        """A pass that has read nothing yet; without `spec` it releases everything."""
        begun = Pass(
            began_seconds=self.clock.monotonic(),
            topology=MACHINE,
            full_resync=full,
            spec=spec or NodeAssignmentSpec(mode="None"),
            naming=self.pods.naming,
        )
        one = self.followers.known(begun)
        return replace(one, goal=goal_of(one, holding=True))

    async def make_pass(self, spec: NodeAssignmentSpec | None, *, full: bool = False) -> Converged:
        """Enforce `spec`, or (None) release everything; let the background tasks run."""
        one = self.begin(spec, full=full)
        assert one.goal is not None
        done = self.reconciler.converge(one.goal, full_resync=full)
        self.last = replace(one, result=done)
        self.followers.follow(self.last)
        await self.clock.run_tasks()
        return done

    def move(self, write: Write, failed_passes: int = 0) -> None:
        """As if the last pass had left this move to do, and so many passes had failed."""
        is_complete, before = not failed_passes, max(failed_passes - 1, 0)
        done = replace(self.last.result, moves=(write,), drifts=(), complete=is_complete)
        self.followers.follow(replace(self.last, result=done, failed_before=before))

    def rest(self, *, left_alone: bool) -> None:
        """A pass that enforces nothing: there is no assignment, or it was released before."""
        spec = None if left_alone else NodeAssignmentSpec(mode="None")
        self.followers.follow(replace(self.begin(spec), spec=spec, goal=None))

    def _written_by_runtime(self, id_: str, resources: ContainerResources) -> None:
        for path in self.model.groups:
            if self.pods.naming.parse(path).container_id == id_:
                self.model.write(Write(path, resources.cpus, Step.GRANT))
                if resources.mems:
                    self.model.write(Write(path, resources.mems, Step.PREPARE))

    async def enforce(self, spec: NodeAssignmentSpec) -> None:
        """A pass before the container has a name, and the pass after."""
        await self.make_pass(spec)
        await self.make_pass(spec)

    @property
    def sent(self) -> list[str]:
        """The CPUs of each update that the runtime was sent."""
        return [str(resources.cpus) for _, resources in self.runtime.updates]

    @property
    def states(self) -> list[State]:
        return in_order(self.followers.states())

    def facts(self) -> Facts:
        return self.followers.facts(self.last, Facts())

    def finishes_soon(self) -> bool:
        return any(one.finishes_soon for one in self.states)

    @property
    def stale_cpus(self) -> dict[str, CpuSet]:
        return {path: cpus for one in self.states for path, cpus in one.stale_cpus.items()}

    @property
    def stalled(self) -> list[Obstacle]:
        return [obstacle for one in self.states for obstacle in one.stalled]

    @property
    def working(self) -> list[Obstacle]:
        return [obstacle for one in self.states for obstacle in one.working]

    @property
    def reasons(self) -> tuple[list[str], list[str]]:
        return [one.reason for one in self.stalled], [one.reason for one in self.working]
