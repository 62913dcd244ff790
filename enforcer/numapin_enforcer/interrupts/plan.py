"""Which CPUs each interrupt may have, what to write for that, and what to restore later.

Does no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from numapin_api.cpuset import CpuSet

DEFAULT: Final = "default_smp_affinity"
"""The mask that new interrupts start with."""

WORKQUEUES: Final = "workqueue/cpumask"
"""The mask of all unbound workqueues. That of a single one is never wider: the kernel intersects
both, and takes this one where nothing is left. Source: workqueue.c, `wqattrs_actualize_cpumask`."""


@dataclass(frozen=True, slots=True)
class Mask:
    """CPUs that an interrupt, or other work of the kernel, may have now.

    Attributes:
        key: the interrupt's number, `DEFAULT` or `WORKQUEUES`.
        cpus: what the kernel has been asked for.
        names: of the interrupt's handlers; empty if it has none, or for the other two.
        numa_node: of its device; negative if unknown.
    """

    key: str
    cpus: CpuSet
    names: frozenset[str] = frozenset()
    numa_node: int = -1

    @property
    def is_idle(self) -> bool:
        """Whether it is of an interrupt without a handler, which does not occur."""
        return not self.names and self.key.isdigit()

    def is_another(self, known: "Saved") -> bool:
        """Whether the number was given to another device; a closed one has no name for a while."""
        return bool(self.names) and self.names.isdisjoint(known.names)

    def __str__(self) -> str:
        return f"{self.key} ({', '.join(sorted(self.names))})" if self.names else self.key


@dataclass(frozen=True, slots=True)
class Saved:
    """What others want a mask to be.

    Attributes:
        cpus: restored in the end.
        names: of the interrupt's handlers. A number without any of these is another interrupt.
        ours: what this program may have written; empty while it has `cpus`.
    """

    cpus: CpuSet
    names: frozenset[str] = frozenset()
    ours: frozenset[CpuSet] = frozenset()


@dataclass(frozen=True, slots=True)
class Limits:
    """Where interrupts may be.

    Attributes:
        exclusive: CPUs to keep off.
        others: reserved and shared CPUs that are online.
        online: of the whole machine.
        by_numa_node: the CPUs of each NUMA node.
    """

    exclusive: CpuSet
    others: CpuSet
    online: CpuSet
    by_numa_node: Mapping[int, CpuSet] = field(default_factory=dict)

    def allowed(self, cpus: CpuSet, numa_node: int) -> CpuSet:
        """What is left of a mask; if nothing is, CPUs near the device, else all `others`.

        A mask stays as it is if there are no others: a device without any CPU does not work.
        """
        if cpus.isdisjoint(self.exclusive):
            return cpus
        left = cpus - self.exclusive
        if left & self.online:
            return left
        near = self.others & self.by_numa_node.get(numa_node, CpuSet())
        return near or self.others or cpus

    def at_birth(self, default: CpuSet, numa_node: int) -> CpuSet:
        """What the kernel makes of the default for a new interrupt.

        Source: kernel/irq/manage.c, `irq_setup_affinity`.
        """
        online = default & self.online
        return online & self.by_numa_node.get(numa_node, CpuSet()) or online


@dataclass(frozen=True, slots=True)
class Change:
    """A mask to write."""

    mask: Mask
    cpus: CpuSet


@dataclass(frozen=True, slots=True)
class Plan:
    """What to save, then to write.

    Attributes:
        saved: by key; interrupts that are gone are left out.
        changes: the writes, the mask of new interrupts first.
        foreign: masks that others have set onto exclusive CPUs since `last`.
    """

    saved: Mapping[str, Saved]
    changes: tuple[Change, ...]
    foreign: tuple[Mask, ...]


def plan(
    masks: Iterable[Mask],
    saved: Mapping[str, Saved],
    limits: Limits,
    last: Mapping[str, CpuSet],
) -> Plan:
    """Narrow masks with exclusive CPUs and widen those whose CPUs are exclusive no more.

    A mask that others set off exclusive CPUs is left to them, and restored as they set it. One that
    they set onto exclusive CPUs is narrowed again, and what was found before is restored.

    Args:
        masks: all that there are, `DEFAULT` first.
        saved: as in the plan before, or on disk.
        limits: without exclusive CPUs everything is restored.
        last: the mask that each key had when it was read last, if it was read at all.
    """
    kept: dict[str, Saved] = {}
    changes: list[Change] = []
    foreign: list[Mask] = []
    for mask in masks:
        known = saved.get(mask.key)
        if known is not None and mask.is_another(known):
            known = None
        if known is None and mask.is_idle:
            continue
        is_changed = known is not None and last.get(mask.key, mask.cpus) != mask.cpus
        if is_changed and _is_intruding(mask, limits):
            foreign.append(mask)
        wanted = _wanted_by_others(mask, known, limits, saved.get(DEFAULT))
        cpus = limits.allowed(wanted, mask.numa_node)
        ours = {cpus} - {wanted}
        if cpus != mask.cpus:
            changes.append(Change(mask, cpus))
            is_ours = mask.cpus in known.ours if known is not None else wanted != mask.cpus
            ours |= {mask.cpus} if is_ours else set()
        names = mask.names or (known.names if known is not None else frozenset())
        kept[mask.key] = Saved(wanted, names, frozenset(ours))
    return Plan(kept, tuple(changes), tuple(foreign))


def _is_intruding(mask: Mask, limits: Limits) -> bool:
    return not mask.cpus.isdisjoint(limits.exclusive)


def _wanted_by_others(
    mask: Mask, known: Saved | None, limits: Limits, default: Saved | None
) -> CpuSet:
    """What a mask would be without this program."""
    if known is None:
        found = _wanted_at_birth(mask, limits, default) if default is not None else None
        return found or mask.cpus
    is_kept = mask.cpus in known.ours or _is_intruding(mask, limits)
    return known.cpus if is_kept else mask.cpus


def _wanted_at_birth(mask: Mask, limits: Limits, default: Saved) -> CpuSet | None:
    """The mask of a new interrupt if it began with the narrowed default; None if it did not."""
    if not mask.key.isdigit():
        return None
    begins = {one for ours in default.ours for one in (ours, limits.at_birth(ours, mask.numa_node))}
    return limits.at_birth(default.cpus, mask.numa_node) if mask.cpus in begins else None
