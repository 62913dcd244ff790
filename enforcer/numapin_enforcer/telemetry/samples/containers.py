"""Samples of exclusive containers: what others used of their CPUs, and for how long they waited."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.telemetry.metric import Labels, Metric, Values
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.telemetry.samples.accumulated import Increases
from numapin_enforcer.telemetry.samples.cpus import CpuSamples
from numapin_enforcer.telemetry.samples.kernel_counters import KernelCounters, ThreadTimes
from numapin_enforcer.telemetry.samples.overlap import (
    ExclusiveContainer,
    Overlaps,
    exclusive_containers,
)
from numapin_enforcer.telemetry.table import (
    CONTAINER_OVERLAP,
    CONTAINER_RUN_DELAY,
    OVERLAP,
    PRESSURE,
    REMOTE_MEMORY,
    RUN_DELAY,
)

LEAST_SECONDS: Final = 5.0
"""A sample is taken at most once in this time, whoever asks how often."""

MOST_THREADS: Final = 2000
"""Threads whose run delay is read in one sample: it takes 10 us for each."""

MOST_BOUND: Final = 64
"""Containers whose memory is looked for in one sample: the kernel adds up counts of all CPUs."""


class Samples:
    """The sums over all samples so far. Belongs to one thread at a time."""

    def __init__(
        self,
        counters: KernelCounters,
        *,
        each_container: bool,
        cpus: CpuSamples | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Sum up nothing yet.

        Args:
            counters: of the kernel.
            each_container: whether each container has series of its own, by its name.
            cpus: samples of each CPU, if they are wanted.
            clock: the machine's by default.
        """
        self._counters, self._each, self._cpus = counters, each_container, cpus
        self._clock = clock or SystemClock()
        self._taken_at: float | None = None
        self._overlaps = Overlaps(counters)
        self._delays = Increases[tuple[str, int]]()
        self._pressures = Increases[tuple[str, str, str]]()
        self._overlap: dict[str, float] = defaultdict(float)
        self._delayed: dict[str, float] = defaultdict(float)
        self._names: dict[str, Labels] = {}
        self._totals = {OVERLAP: 0.0, RUN_DELAY: 0.0}
        self._pressure: dict[Labels, float] = defaultdict(float)
        self._remote_bytes: float | None = None
        self.foreign = 0
        """On the CPUs of how many containers other tasks ran since the sample before."""

    def take(self, tree: Tree, desired: Mapping[str, Desired]) -> None:
        """Take a sample, unless the last one is too new."""
        now_seconds = self._clock.monotonic()
        elapsed_seconds = now_seconds - self._taken_at if self._taken_at is not None else 0.0
        if self._taken_at is not None and elapsed_seconds < LEAST_SECONDS:
            return
        self._taken_at = now_seconds
        containers = exclusive_containers(tree, desired)
        self._names = {one.path: one.labels for one in containers}
        for known in (self._overlap, self._delayed):
            for path in known.keys() - self._names.keys():
                del known[path]
        self._sample_overlap(containers, elapsed_seconds)
        self._sample_threads(containers)
        self._sample_pressure(containers)
        self._sample_memory(tree, desired)

    def values(self) -> Values:
        """The sums, and the last amounts."""
        values: dict[Metric, Mapping[Labels, float]] = {
            OVERLAP: {(): self._totals[OVERLAP]},
            RUN_DELAY: {(): self._totals[RUN_DELAY]},
            PRESSURE: dict(self._pressure),
        }
        if self._remote_bytes is not None:
            values[REMOTE_MEMORY] = {(): self._remote_bytes}
        if self._each:
            names = self._names.items()
            values[CONTAINER_OVERLAP] = {name: self._overlap[path] for path, name in names}
            values[CONTAINER_RUN_DELAY] = {name: self._delayed[path] for path, name in names}
        if self._cpus is not None:
            values |= self._cpus.values()
        return values

    def _sample_overlap(
        self, containers: Sequence[ExclusiveContainer], elapsed_seconds: float
    ) -> None:
        sample = self._overlaps.take(containers, elapsed_seconds)
        self._totals[OVERLAP] += sample.total_seconds
        for path, seconds in sample.seconds.items():
            self._overlap[path] += seconds
        self.foreign = len(sample.foreign)

    def _sample_threads(self, containers: Sequence[ExclusiveContainer]) -> None:
        times: dict[tuple[str, int], ThreadTimes] = {}
        for one in containers:
            for thread in self._threads(one):
                if len(times) >= MOST_THREADS:
                    break
                if (found := self._counters.thread_times(thread)) is not None:
                    times[one.path, thread] = found
        delays = {key: one.waited_seconds for key, one in times.items()}
        for (path, _), increase in self._delays.since_last(delays).items():
            self._delayed[path] += increase
            self._totals[RUN_DELAY] += increase
        if self._cpus is not None:
            slices = {key: one.slices for key, one in times.items()}
            self._cpus.take(containers, slices if len(times) < MOST_THREADS else None)

    def _threads(self, one: ExclusiveContainer) -> Iterator[int]:
        for path in (one.path, *one.inside):
            yield from self._counters.threads(path)

    def _sample_pressure(self, containers: Iterable[ExclusiveContainer]) -> None:
        now = {
            (one.path, *labels): seconds
            for one in containers
            for labels, seconds in self._counters.pressure(one.path).items()
        }
        for (_, resource, kind), increase in self._pressures.since_last(now).items():
            self._pressure[resource, kind] += increase

    def _sample_memory(self, tree: Tree, desired: Mapping[str, Desired]) -> None:
        """Where the memory of bound containers is; of the first of them, if there are many."""
        bound = [
            (path, want.container.mems)
            for path, want in desired.items()
            if want.container is not None
            and want.container.mems
            and desired[tree.parents[path]].container is None
        ]
        self._remote_bytes = float(
            sum(
                count
                for path, mems in bound[:MOST_BOUND]
                for node, count in self._counters.numa_bytes(path).items()
                if node not in mems
            )
        )
