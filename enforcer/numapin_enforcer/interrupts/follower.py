"""Has interrupts kept off exclusive CPUs while the spec says so."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import InterruptsStatus, NodeAssignmentSpec
from numapin_api.text import cut_text
from numapin_api.topology import Topology
from numapin_enforcer.interrupts.files import KernelMasks
from numapin_enforcer.interrupts.plan import Limits
from numapin_enforcer.interrupts.updater import Host, InterruptUpdater
from numapin_enforcer.node.boot_id import read_boot_id
from numapin_enforcer.pass_values import Pass
from numapin_enforcer.settings import Settings
from numapin_enforcer.status.state import State

MOST_MESSAGE: Final = 1024


@dataclass(eq=False, slots=True)
class Interrupts:
    """Hands the updater what is wanted of interrupts after a pass."""

    updater: InterruptUpdater
    _for: tuple[CpuSet, CpuSet, Topology] | None = field(default=None, init=False)
    """What the last limits were made of."""
    _is_asked: bool = field(default=False, init=False)

    def follow(self, one: Pass) -> None:
        """Keep interrupts off exclusive CPUs, or restore them; if the node is left alone, rest."""
        spec = one.enforced
        if one.left_alone or (one.enforces and spec is None):
            self._for = None
            self.updater.pause()
            return
        self._is_asked = _is_wanted(spec)
        exclusive, others = _wanted(spec)
        made_of = (exclusive, others, one.topology)
        if made_of != self._for:
            self._for = made_of
            self.updater.want(limits_of(exclusive, others, one.topology))

    def state(self) -> State:
        """What may interrupt exclusive CPUs nevertheless, or has not its CPUs again."""
        updater = self.updater
        if not self._is_asked:
            return State(working=updater.obstacles())
        lacking = updater.lacking
        why = f"interrupts may come to exclusive CPUs: {lacking}" if lacking else ""
        note = "; ".join(filter(None, (why, updater.note)))
        return State(note=note, reason=Reason.INTERRUPTS_NOT_MOVED if note else None)

    def status(self) -> InterruptsStatus | None:
        """What the kernel says; None if the spec leaves interrupts alone."""
        if not self._is_asked:
            return None
        message = cut_text(self.updater.message, MOST_MESSAGE) or None
        return InterruptsStatus(self.updater.outcome.kept_off, message)


def masks_of(settings: Settings) -> Host:
    """The masks of this node."""
    files = KernelMasks(settings.irq_dir, settings.workqueue_dir)
    return Host(files, settings.state_dir, read_boot_id(settings.procfs))


def interrupts(settings: Settings, wake: asyncio.Event) -> Interrupts:
    """The follower of this node; see `InterruptUpdater`."""
    return Interrupts(InterruptUpdater(masks_of(settings), wake))


def limits_of(exclusive: CpuSet, others: CpuSet, topology: Topology) -> Limits:
    """The limits on a machine."""
    online = topology.online | topology.withheld
    by_numa_node = CpuSet.grouped((cpu.numa_node, cpu.id) for cpu in topology.cpus)
    return Limits(exclusive, (others - exclusive) & online, online, by_numa_node)


def _is_wanted(spec: NodeAssignmentSpec | None) -> bool:
    return spec is not None and spec.system is not None and spec.system.interrupts == "KeepOff"


def _wanted(spec: NodeAssignmentSpec | None) -> tuple[CpuSet, CpuSet]:
    """The exclusive CPUs to keep off, and all others; none if nothing is wanted."""
    if spec is None or spec.pools is None or not _is_wanted(spec):
        return CpuSet(), CpuSet()
    return spec.exclusive_cpus, spec.pools.reserved | spec.pools.shared
