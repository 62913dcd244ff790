"""Has caches shared out by resctrl while the spec says so."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain import CacheStatus, NodeAssignmentSpec
from numapin_api.text import cut_text
from numapin_api.topology import Topology
from numapin_enforcer.node.boot_id import read_boot_id
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.resctrl.files import Resctrl
from numapin_enforcer.resctrl.folder import KernelFolder
from numapin_enforcer.resctrl.updater import CacheUpdater, Host
from numapin_enforcer.resctrl.values import NOTHING, Wanted
from numapin_enforcer.settings import Settings
from numapin_enforcer.status.state import State

MOST_TEXT: Final = 1024


@dataclass(eq=False, slots=True)
class Caches:
    """Hands the updater what is wanted of resctrl after a pass."""

    updater: CacheUpdater
    _is_asked: bool = field(default=False, init=False)

    def follow(self, one: Pass) -> None:
        """Share out caches, or restore them; if the node is left alone, rest."""
        spec = one.enforced
        if one.left_alone or (one.enforces and spec is None):
            self.updater.pause()
            return
        self._is_asked = spec is not None and spec.cache is not None
        self.updater.want(wanted_of(spec, one.topology))

    def state(self) -> State:
        """What exclusive CPUs do not have of caches, or what is not restored."""
        updater = self.updater
        if not self._is_asked:
            return State(working=updater.obstacles())
        lacking = updater.message
        note = f"caches are not shared out as the policy says: {lacking}" if lacking else ""
        return State(note=note, reason=Reason.CACHE_NOT_SHARED_OUT if note else None)

    def status(self) -> CacheStatus | None:
        """What the kernel says; None if the spec leaves caches alone."""
        if not self._is_asked:
            return None
        outcome = self.updater.outcome
        message = cut_text(self.updater.message, MOST_TEXT) or None
        return CacheStatus(outcome.cpus, cut_text(outcome.schemata, MOST_TEXT), message)


def resctrl_of(settings: Settings) -> Host:
    """The resctrl of this node."""
    files = Resctrl(KernelFolder(settings.resctrl_dir))
    return Host(files, settings.state_dir, read_boot_id(settings.procfs))


def caches(settings: Settings, wake: asyncio.Event) -> Caches:
    """The follower of this node; see `CacheUpdater`."""
    return Caches(CacheUpdater(resctrl_of(settings), wake))


def wanted_of(spec: NodeAssignmentSpec | None, topology: Topology) -> Wanted:
    """The shares of the exclusive CPUs that are online; nothing if the spec asks for none."""
    if spec is None or spec.cache is None:
        return NOTHING
    exclusive, others = spec.cache.classes.exclusive, spec.cache.classes.others
    cpus = spec.exclusive_cpus & topology.online
    return Wanted(
        cpus,
        frozenset(cpu.uncore_cache for cpu in topology.cpus if cpu.id in cpus),
        exclusive.l3_percent,
        exclusive.memory_bandwidth_percent,
        others.memory_bandwidth_percent,
    )
