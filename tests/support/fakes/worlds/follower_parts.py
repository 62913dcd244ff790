"""Real followers over fakes of what is outside: kernel, runtime, systemd, API server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import NodeAssignmentSpec
from numapin_client.events import Event
from numapin_enforcer.cfs_quota.updater import CfsQuotaUpdater
from numapin_enforcer.cgroups.memory.binding import SavedMems
from numapin_enforcer.cgroups.memory.mover import MemoryMover
from numapin_enforcer.followers.cfs_quota import CfsQuotas
from numapin_enforcer.followers.changes import Changes
from numapin_enforcer.followers.containers import Containers
from numapin_enforcer.followers.followers import Followers
from numapin_enforcer.followers.memory import Memory
from numapin_enforcer.followers.observed import Observed
from numapin_enforcer.followers.outside import Outside
from numapin_enforcer.followers.runtime import RuntimeResources
from numapin_enforcer.followers.slices import Slices
from numapin_enforcer.host.follower import HostProcesses
from numapin_enforcer.interrupts.files import KernelMasks
from numapin_enforcer.interrupts.follower import Interrupts
from numapin_enforcer.interrupts.updater import Host, InterruptUpdater
from numapin_enforcer.node.dra_claims import DraClaims
from numapin_enforcer.partitions.follower import Partitions
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.podresources.follower import Devices
from numapin_enforcer.resctrl.files import Resctrl as ResctrlFiles
from numapin_enforcer.resctrl.folder import KernelFolder
from numapin_enforcer.resctrl.follower import Caches
from numapin_enforcer.resctrl.updater import CacheUpdater
from numapin_enforcer.resctrl.updater import Host as Resctrl
from numapin_enforcer.runtime.container_names import ContainerNames
from numapin_enforcer.runtime.outside_containers import OutsideContainers
from numapin_enforcer.runtime.updates.previous_updates import PreviousUpdates
from numapin_enforcer.runtime.updates.updater import RuntimeUpdater
from numapin_enforcer.start_gate.follower import StartGates
from numapin_enforcer.systemd.updater import SliceUpdater
from support.fakes.kernels.host_cgroups import FakeHost, HostWorld
from support.fakes.kernels.pods import ModelFinder
from support.fakes.manual_clock import ManualClock
from support.fakes.runtime import FakeRuntime
from support.fakes.systemd import FakeSystemd


@dataclass
class Posted:
    """The Events that were asked for, and the drifts that were reported."""

    drifts: list[Drift] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def drifted(self, drift: Drift, _assignment: Mapping[str, Any] | None) -> None:
        self.drifts.append(drift)

    def post(self, event: Event, _assignment: Mapping[str, Any] | None) -> None:
        self.events.append(event)


@dataclass
class Outer:
    """What followers act on."""

    kubepods: ModelFinder
    runtime: FakeRuntime
    systemd: FakeSystemd
    folder: Path
    wake: asyncio.Event
    clock: ManualClock
    pod_resources: Path | None = None
    posted: Posted = field(default_factory=Posted)
    saved_mems: SavedMems = field(init=False)
    host: HostWorld = field(init=False)

    def __post_init__(self) -> None:
        self.saved_mems = SavedMems(self.folder)
        host = FakeHost(CpuSet(range(4)))
        self.host = HostWorld(host, self.folder, self.wake, self.clock)

    def followers(self, previous: NodeAssignmentSpec | None = None) -> Followers:
        """Followers of a process that begins, after one that enforced `previous`."""
        runtime, wake, clock, pods = self.runtime, self.wake, self.clock, self.kubepods
        updater, names = RuntimeUpdater(runtime, wake, clock), ContainerNames(runtime, wake, clock)
        containers = Containers(pods, names, PreviousUpdates(previous), updater)
        cfs_quota = CfsQuotas(pods, containers, CfsQuotaUpdater(self.folder, wake, clock))
        resources = RuntimeResources(containers, updater, cfs_quota.updater)
        observed = Observed(pods, DraClaims(self.folder / "cdi"), clock)
        finder = OutsideContainers(runtime, wake, clock)
        mover = MemoryMover(wake, self.saved_mems, clock)
        return Followers(
            changes=Changes(updater, self.posted, clock),
            containers=containers,
            cfs_quota=cfs_quota,
            runtime=resources,
            memory=Memory(pods, resources, mover),
            slices=Slices(containers, SliceUpdater(lambda: self.systemd, wake, clock)),
            partitions=Partitions(pods, mover.gate, self.folder, "6.1.0", clock),
            observed=observed,
            outside=Outside(pods, containers, observed, finder),
            devices=Devices(containers, runtime, self.pod_resources, wake, clock),
            start_gates=StartGates(containers, self.folder / "nri.sock", self.folder, wake, clock),
            host=HostProcesses(self.host.updater()),
            interrupts=Interrupts(InterruptUpdater(self._interrupts(), wake, clock)),
            caches=Caches(CacheUpdater(self._resctrl(), wake, clock)),
        )

    def _interrupts(self) -> Host:
        """Files of a kernel that are not there unless a test makes them."""
        return Host(KernelMasks(self.folder / "irq", self.folder / "workqueue"), self.folder, "1")

    def _resctrl(self) -> Resctrl:
        """A machine without resctrl unless a test makes one."""
        return Resctrl(ResctrlFiles(KernelFolder(self.folder / "resctrl")), self.folder, "1")


def start_updaters(followers: Followers, start: Callable[[Awaitable[None]], None]) -> None:
    """Run what works in the background."""
    for task in (
        followers.containers.names.run(),
        followers.runtime.updater.run(),
        followers.slices.updater.run(),
        followers.cfs_quota.updater.run(),
        followers.memory.mover.run(),
        followers.outside.finder.run(),
        followers.devices.kubelet.run(),
        followers.host.updater.run(),
        followers.interrupts.updater.run(),
        followers.caches.updater.run(),
    ):
        start(task)
