"""A kernel's interrupts and unbound workqueues, which refuse what the kernel refuses.

Source: Linux kernel/irq/proc.c, `write_irq_affinity` and `default_affinity_write`; manage.c,
`irq_setup_affinity`; workqueue.c, `workqueue_set_unbound_cpumask`.
"""

from dataclasses import dataclass, field

from numapin_api.cpuset import CpuSet
from numapin_enforcer.interrupts.files import InterruptsError, MaskGoneError, MaskRefusedError
from numapin_enforcer.interrupts.plan import DEFAULT, WORKQUEUES, Mask

MANAGED = "the kernel does not change it (EIO)"


@dataclass
class Interrupt:
    """One interrupt.

    Attributes:
        cpus: what `smp_affinity_list` says; `effective` is the CPU to which it comes.
        managed: the kernel has set it, and takes no other CPUs.
        deferred: other CPUs get it only after it has come once more.
    """

    names: frozenset[str]
    cpus: CpuSet
    numa_node: int = -1
    managed: bool = False
    deferred: bool = False
    effective: CpuSet = CpuSet()

    def settle(self) -> None:
        """It comes, and moves to one of its CPUs."""
        self.effective = CpuSet((min(self.cpus),))


@dataclass
class FakeMasks:
    """All masks of a machine with these CPUs, all online."""

    online: CpuSet
    by_numa_node: dict[int, CpuSet] = field(default_factory=dict)
    interrupts: dict[str, Interrupt] = field(default_factory=dict)
    default: CpuSet = CpuSet()
    workqueues: CpuSet = CpuSet()
    read_only: bool = False
    writes: list[tuple[str, str]] = field(default_factory=list)
    reads: int = 0
    dies_after: int | None = None
    """So many writes are made before the process is killed."""

    def __post_init__(self) -> None:
        self.default = self.default or self.online
        self.workqueues = self.workqueues or self.online

    def plug(self, number: str, *names: str, numa_node: int = -1, managed: bool = False) -> None:
        """A driver asks for an interrupt: it begins with the default, near its device if it can."""
        cpus = self.default & self.online or self.online
        cpus = cpus & self.by_numa_node.get(numa_node, CpuSet()) or cpus
        made = Interrupt(frozenset(names), self.online if managed else cpus, numa_node, managed)
        made.settle()
        self.interrupts[number] = made

    def everything(self) -> dict[str, CpuSet]:
        """Each mask by key."""
        found = {DEFAULT: self.default, WORKQUEUES: self.workqueues}
        return found | {key: one.cpus for key, one in self.interrupts.items()}

    def read(self, *, again: bool) -> list[Mask]:
        """See `MaskFiles`. Nothing is remembered."""
        self.reads += 1
        numbers = sorted(self.interrupts.items(), key=lambda one: int(one[0]))
        return [
            Mask(DEFAULT, self.default),
            Mask(WORKQUEUES, self.workqueues),
            *(Mask(key, one.cpus, one.names, one.numa_node) for key, one in numbers),
        ]

    def read_effective(self, mask: Mask) -> CpuSet:
        """See `MaskFiles`."""
        one = self.interrupts.get(mask.key)
        return one.effective if one is not None else mask.cpus

    def write(self, mask: Mask, cpus: CpuSet) -> CpuSet:
        """See `MaskFiles`."""
        if self.read_only:
            raise InterruptsError("/proc/irq/default_smp_affinity cannot be written (EROFS)")
        if mask.key.isdigit() and mask.key not in self.interrupts:
            raise MaskGoneError(mask.key)
        if self.dies_after is not None and len(self.writes) >= self.dies_after:
            raise KilledError
        if not cpus & self.online:
            raise MaskRefusedError("the kernel does not change it (EINVAL)")
        self.set(mask.key, cpus)
        self.writes.append((mask.key, str(cpus)))
        return cpus

    def set(self, key: str, cpus: CpuSet) -> None:
        """Anybody writes a mask."""
        if key == DEFAULT:
            self.default = cpus
        elif key == WORKQUEUES:
            self.workqueues = cpus
        else:
            one = self.interrupts[key]
            if one.managed:
                raise MaskRefusedError(MANAGED)
            one.cpus = cpus
            if not one.deferred:
                one.settle()


class KilledError(BaseException):
    """The process ends here."""
