"""Has processes of no pod keep off the exclusive CPUs of a spec that asks for it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import HostProcessesStatus
from numapin_enforcer.cgroups.mounts import Mounts
from numapin_enforcer.cgroups.naming import CgroupNaming, Driver
from numapin_enforcer.host.cgroup_sets import KeepOff
from numapin_enforcer.host.files import HostFiles
from numapin_enforcer.host.found import FoundCgroups
from numapin_enforcer.host.keeper import HostKeeper
from numapin_enforcer.host.root_tasks import RootTasks
from numapin_enforcer.host.units import Units
from numapin_enforcer.host.updater import HostUpdater
from numapin_enforcer.host.watch import HostWatch
from numapin_enforcer.node.boot_id import read_boot_id
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.plan.drift import Drift
from numapin_enforcer.settings import NodeSettings
from numapin_enforcer.status.state import State
from numapin_enforcer.systemd.interface import UnitManager


def _ignore(_drift: Drift, _body: Mapping[str, Any] | None) -> None:
    """Count nothing."""


@dataclass(eq=False, slots=True)
class HostProcesses:
    """Hands the updater what a pass has enforced.

    Attributes:
        on_drift: is told of each change by others that was reverted.
    """

    updater: HostUpdater
    on_drift: Callable[[Drift, Mapping[str, Any] | None], None] = _ignore
    _is_asked: bool = field(default=False, init=False)

    def follow(self, one: Pass) -> None:
        """Keep off what the spec gives containers; nothing changes while the node is left alone.

        Containers have their CPUs by now: what gets others leaves these.
        """
        for drift in self.updater.pop_drifts():
            self.on_drift(drift, one.body)
        if one.left_alone or (one.naming is None and one.enforces):
            return
        naming = one.naming or CgroupNaming(Driver.SYSTEMD)
        wanted = keep_off(one, naming)
        self._is_asked = wanted is not None
        given_back = KeepOff(pod_trees=pod_trees(naming))
        self.updater.want(wanted or given_back, resynced=one.resynced)

    def state(self) -> State:
        """What may use exclusive CPUs nevertheless, or has not all its CPUs again."""
        updater, obstacles = self.updater, self.updater.obstacles()
        if obstacles or not self._is_asked or not (message := updater.message):
            return State(working=obstacles, finishes_soon=updater.finishes_soon)
        note = f"processes of the host may use exclusive CPUs: {message}"
        return State(note=note, reason=Reason.HOST_PROCESSES_LEFT)

    def status(self) -> HostProcessesStatus | None:
        """What the status says; None if the spec leaves processes of the host alone."""
        if not self._is_asked:
            return None
        return HostProcessesStatus(self.updater.kept_off, self.updater.message or None)


def keeper_on(
    mounts: Mounts, settings: NodeSettings, connect: Callable[[], UnitManager]
) -> HostKeeper:
    """What writes the cgroups of this node that hold no pods."""
    found = FoundCgroups(settings.state_dir, read_boot_id(settings.procfs))
    return HostKeeper(HostFiles(mounts, settings.sysfs), found, Units(connect))


def host_processes(
    mounts: Mounts,
    settings: NodeSettings,
    connect: Callable[[], UnitManager],
    wake: asyncio.Event,
) -> HostProcesses:
    """The follower of this node; see `HostUpdater`."""
    keeper, roots = keeper_on(mounts, settings, connect), RootTasks(mounts, settings.procfs)
    return HostProcesses(HostUpdater(keeper, roots, partial(HostWatch, mounts.cpuset), wake))


def keep_off(one: Pass, naming: CgroupNaming) -> KeepOff | None:
    """What the enforced spec has processes of the host keep off; None if it leaves them alone."""
    spec = one.enforced
    if spec is None or spec.system is None or spec.system.processes != "KeepOff":
        return None
    pools = spec.pools
    least = pools.reserved | pools.shared if pools is not None else CpuSet()
    return KeepOff(spec.exclusive_cpus, least, pod_trees(naming))


def pod_trees(naming: CgroupNaming) -> tuple[str, ...]:
    """The kubelet's cgroups for pods, with those that it had if its driver was changed."""
    return tuple(sorted(CgroupNaming(driver, naming.cgroup_root).root for driver in Driver))
