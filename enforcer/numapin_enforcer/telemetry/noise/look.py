"""One look at the exclusive CPUs of a node: which tasks are there, and which interrupts came."""

from dataclasses import dataclass

from numapin_api.cpuset import CpuSet
from numapin_enforcer.pass_values import Converged
from numapin_enforcer.telemetry.noise.tasks import TaskReader, Tasks
from numapin_enforcer.telemetry.samples.interrupts import Interrupt
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.telemetry.samples.overlap import ExclusiveContainer, exclusive_containers


@dataclass(frozen=True, slots=True)
class Look:
    """What was there at one moment.

    Attributes:
        containers: those with exclusive CPUs, each with its threads.
        cpus: their CPUs.
        tasks: those that were there last and are not of the container that has the CPU.
        interrupts: those that have come there.
    """

    containers: tuple[tuple[ExclusiveContainer, tuple[int, ...]], ...]
    cpus: CpuSet
    tasks: Tasks
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, slots=True)
class Looker:
    """Reads the kernel's counters of the exclusive CPUs that a pass has found; keeps nothing."""

    counters: KernelCounters
    tasks: TaskReader

    def look(self, last: Converged) -> Look:
        """Look once; it takes some 0.2 s on a large node."""
        tree = last.tree
        found = exclusive_containers(tree, last.desired) if tree is not None else ()
        containers = tuple((one, self._threads(one)) for one in found)
        owners: dict[int, CpuSet] = {}
        for one, threads in containers:
            owners |= {thread: owners.get(thread, CpuSet()) | one.cpus for thread in threads}
        cpus = CpuSet.union(one.cpus for one in found)
        interrupts = tuple(self.counters.interrupts(cpus)) if cpus else ()
        tasks = self.tasks.on(cpus, owners) if cpus else Tasks((), complete=True)
        return Look(containers, cpus, tasks, interrupts)

    def _threads(self, one: ExclusiveContainer) -> tuple[int, ...]:
        paths = (one.path, *one.inside)
        return tuple(thread for path in paths for thread in self.counters.threads(path))
