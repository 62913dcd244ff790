"""Samples of exclusive CPUs: how often tasks began to run there, and which interrupts came."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from numapin_api.cpuset import CpuSet
from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.telemetry.metric import OTHER, Labels, Values
from numapin_enforcer.telemetry.samples.accumulated import Excess, Increases
from numapin_enforcer.telemetry.samples.interrupts import Interrupt, increases
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters
from numapin_enforcer.telemetry.samples.overlap import ExclusiveContainer, by_cpus
from numapin_enforcer.telemetry.table import (
    CPU_INTERRUPTS,
    CPU_SWITCHES,
    FOREIGN_SWITCHES,
    INTERRUPTS,
    MIGRATIONS,
)

COST_SHARE: Final = 0.005
"""The part of one CPU that samples may take: one of 440 CPUs and 1,000 interrupts takes 50 ms."""

MOST_DEBT: Final = 10_000
"""How many more times the threads of a container may have begun to run than its CPUs say, and still
be set off: the two are not read at the same moment."""

Slices = Mapping[tuple[str, int], int]
"""How often each thread began to run, by the cgroup of its container and its id."""


class CpuSamples:
    """The sums over all samples so far. Belongs to one thread at a time."""

    def __init__(self, counters: KernelCounters, clock: Clock | None = None) -> None:
        self._counters, self._clock = counters, clock or SystemClock()
        self._due_seconds = 0.0
        self._cpus, self._has_slices = CpuSet(), False
        self._slices, self._own = Increases[int](), Increases[tuple[str, int]]()
        self._moved = Increases[tuple[str, int]]()
        self._came: tuple[Interrupt, ...] = ()
        self._began: dict[str, float] = {}
        self._excess: dict[tuple[tuple[str, ...], CpuSet], Excess] = {}
        self._switches: dict[int, int] = defaultdict(int)
        self._interrupts: dict[int, int] = defaultdict(int)
        self._named: dict[str, int] = defaultdict(int)
        self._foreign = self._migrations = 0.0

    def take(self, containers: Sequence[ExclusiveContainer], own: Slices | None) -> None:
        """Take a sample, unless the last ones have taken too much time.

        Args:
            containers: those that have exclusive CPUs.
            own: of all of their threads; None if there are too many.
        """
        if self._clock.monotonic() < self._due_seconds:
            return
        began_seconds = time.thread_time()
        cpus = CpuSet.union(one.cpus for one in containers)
        known, self._cpus = self._cpus & cpus, cpus
        for sums in (self._switches, self._interrupts):
            for cpu in sums.keys() - cpus:
                del sums[cpu]
        slices = self._counters.cpu_slices()
        self._has_slices = bool(slices)
        self._note_switches(slices, known)
        self._note_interrupts(cpus, known)
        self._note_threads(containers, own)
        self._note_foreign(containers if own is not None and slices else (), slices)
        spent_seconds = time.thread_time() - began_seconds
        self._due_seconds = self._clock.monotonic() + spent_seconds / COST_SHARE

    def values(self) -> Values:
        """The sums."""
        return {
            CPU_SWITCHES: _by_cpu(self._switches),
            CPU_INTERRUPTS: _by_cpu(self._interrupts),
            INTERRUPTS: {(name,): float(count) for name, count in self._named.items()},
            FOREIGN_SWITCHES: {(): self._foreign} if self._has_slices else {},
            MIGRATIONS: {(): self._migrations},
        }

    def _note_switches(self, slices: Mapping[int, int], known: CpuSet) -> None:
        mine = {cpu: float(count) for cpu, count in slices.items() if cpu in self._cpus}
        for cpu, increase in self._slices.since_last(mine).items():
            self._switches[cpu] += int(increase) if cpu in known else 0

    def _note_interrupts(self, cpus: CpuSet, known: CpuSet) -> None:
        before, self._came = self._came, tuple(self._counters.interrupts(cpus))
        for one, cpu, increase in increases(before, self._came, known):
            self._interrupts[cpu] += increase
            self._named[self._label(one.name)] += increase

    def _label(self, name: str) -> str:
        """The name, or that of all others once the metric has as many series as it may have."""
        is_known = name in self._named or len(self._named) < INTERRUPTS.most_series - 1
        return name if is_known else OTHER

    def _note_threads(self, containers: Iterable[ExclusiveContainer], own: Slices | None) -> None:
        """How often threads of containers began to run, and went to other CPUs."""
        moved = {key: float(self._counters.migrations(key[1])) for key in own or {}}
        self._migrations += sum(self._moved.since_last(moved).values())
        began = {one.path: self._began.get(one.path, 0.0) for one in containers}
        for (path, _), increase in self._own.since_last(dict(own or {})).items():
            began[path] += increase
        self._began = began

    def _note_foreign(
        self, containers: Iterable[ExclusiveContainer], slices: Mapping[int, int]
    ) -> None:
        """How often tasks began to run on the CPUs of containers that are not theirs."""
        known, self._excess = self._excess, {}
        for cpus, group in by_cpus(containers):
            key = tuple(one.path for one in group), cpus
            self._excess[key] = excess = known.get(key) or Excess(MOST_DEBT)
            whole = sum(slices.get(cpu, 0) for cpu in cpus)
            self._foreign += excess.since_last(whole, sum(self._began[path] for path in key[0]))


def _by_cpu(sums: Mapping[int, int]) -> Mapping[Labels, float]:
    return {(str(cpu),): float(count) for cpu, count in sums.items()}
