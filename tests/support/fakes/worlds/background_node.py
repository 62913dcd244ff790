"""A node for the background updates: models of kernel, runtime and systemd, and their updaters."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain import ContainerAssignment, NodeAssignmentSpec, Pools
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_campaigns.histories.kernel.watched import ModelWatch, WatchedModel
from numapin_enforcer.background import BackgroundUpdates
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.cgroups.memory.mover import MemoryMover
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.cgroups.tree import OutsideCgroup, Version
from numapin_enforcer.cgroups.tree_cache import TreeCache
from numapin_enforcer.cgroups.write import Quota, Step, Write
from numapin_enforcer.goals import AssignmentGoal, ReleaseGoal
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.reconciler import Converged, Reconciler
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.interface import ContainerResources
from numapin_enforcer.runtime.outside_containers import OutsideContainers
from numapin_enforcer.runtime.previous_updates import PreviousUpdates
from numapin_enforcer.runtime.updater import RuntimeUpdater
from numapin_enforcer.systemd.updater import SliceUpdater
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.systemd import FakeSystemd

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
    """Pod 1 with one container; passes enforce a spec and then update the background."""

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
        self.external: list[Drift] = []
        """The drifts that numapin's own updates of the runtime cannot have made."""
        self.elsewhere: dict[str, OutsideCgroup] = {}
        """Container id to its cgroup outside of the kubelet's tree."""
        naming = CgroupNaming(Driver.SYSTEMD)
        snapshot = TreeCache(self.model, ModelWatch(self.model))
        self.pods: Any = SimpleNamespace(
            naming=naming, files=self.model, snapshot=snapshot, outside=self.find_outside
        )
        self.reconciler = Reconciler(self.model, snapshot, naming)
        self.background = BackgroundUpdates(
            names=ContainerNames(runtime, wake, self.clock),
            runtime=RuntimeUpdater(runtime, wake, self.clock),
            slices=SliceUpdater(lambda: self.systemd, wake, self.clock),
            cfs_quota=CfsQuotaUpdater(folder, wake, self.clock),
            memory=MemoryMover(wake, SavedMems(folder), self.clock),
            previous=PreviousUpdates(previous),
            outside=OutsideContainers(runtime, wake, self.clock),
        )

    def start(self, start: Callable[[Awaitable[None]], None]) -> None:
        for task in (
            self.background.names.run(),
            self.background.runtime.run(),
            self.background.slices.run(),
            self.background.cfs_quota.run(),
            self.background.memory.run(),
            self.background.outside.run(),
        ):
            start(task)

    def find_outside(self, ids: Collection[str]) -> dict[str, OutsideCgroup]:
        return {id_: one for id_, one in self.elsewhere.items() if id_ in ids}

    async def make_pass(self, spec: NodeAssignmentSpec | None, *, full: bool = False) -> Converged:
        """Enforce `spec`, or (None) release everything; let the background tasks run."""
        names, found = self.background.names.known, self.background.memory.found_mems
        by_runtime = self.background.by_runtime
        goal: AssignmentGoal | ReleaseGoal = (
            AssignmentGoal(spec, MACHINE, names, found, by_runtime)
            if spec
            else ReleaseGoal(MACHINE, found)
        )
        done = self.reconciler.converge(goal, full_resync=full)
        self.external += self.background.external(done.drifts, self.pods.naming)
        self.background.update(spec, self.pods, done, full_resync=full)
        await self.clock.run_tasks()
        return done

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

    def reasons(self, failed_passes: int = 0) -> tuple[list[str], list[str]]:
        report = self.background.report(failed_passes)
        return [one.reason for one in report.stalled], [one.reason for one in report.working]
