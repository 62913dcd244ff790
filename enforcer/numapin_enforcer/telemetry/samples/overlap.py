"""How much CPU time other tasks used on the CPUs of exclusive containers. Does no I/O."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain import ContainerAssignment
from numapin_daemon.telemetry.metric import Labels
from numapin_enforcer.cgroups.tree import Tree
from numapin_enforcer.plan.containment import Desired
from numapin_enforcer.telemetry.samples.accumulated import Excess

FOREIGN_SHARE: Final = 0.05
FOREIGN_SHARE_EACH: Final = 0.005
"""Other tasks count as running on exclusive CPUs if they used this share of one CPU, and the second
share of each further one: kernel threads run on every CPU now and then."""


@dataclass(frozen=True, slots=True)
class ExclusiveContainer:
    """One exclusive container: its cgroup, those inside it, its CPUs and its name."""

    path: str
    inside: tuple[str, ...]
    cpus: CpuSet
    container: ContainerAssignment

    @property
    def labels(self) -> Labels:
        """Its name, as labels of its own metrics."""
        return self.container.namespace, self.container.pod, self.container.container


def exclusive_containers(
    tree: Tree, desired: Mapping[str, Desired]
) -> tuple[ExclusiveContainer, ...]:
    """The exclusive containers that have a cgroup."""
    return tuple(
        ExclusiveContainer(path, tuple(_inside(tree, path)), want.cpus, want.container)
        for path, want in desired.items()
        if want.exclusive
        and want.container is not None
        and desired[tree.parents[path]].container is None
    )


def _inside(tree: Tree, path: str) -> Iterator[str]:
    for child in tree.children[path]:
        yield child
        yield from _inside(tree, child)


def by_cpus(
    containers: Iterable[ExclusiveContainer],
) -> Iterator[tuple[CpuSet, list[ExclusiveContainer]]]:
    """The containers by their CPUs, which containers of one pod may have together."""
    groups: dict[tuple[str, CpuSet], list[ExclusiveContainer]] = {}
    for one in containers:
        groups.setdefault((one.container.pod_uid, one.cpus), []).append(one)
    for (_, cpus), group in groups.items():
        yield cpus, group


class CpuTimes(Protocol):
    """Counters of CPU time; see `KernelCounters`."""

    def cpu_seconds(self) -> Mapping[int, float]:
        """What all tasks together used of each CPU."""
        ...

    def cgroup_seconds(self, path: str, cpus: CpuSet) -> float | None:
        """What a cgroup used of some CPUs; None if it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class OverlapSample:
    """What other tasks used since the sample before.

    Attributes:
        total_seconds: on all exclusive CPUs.
        seconds: on the CPUs of each container, by cgroup.
        foreign: the cgroups for which that is more than kernel threads need.
    """

    total_seconds: float
    seconds: Mapping[str, float]
    foreign: frozenset[str]


class Overlaps:
    """Compares the time of CPUs with that of the containers which have them."""

    def __init__(self, counters: CpuTimes) -> None:
        self._counters = counters
        self._excess: dict[tuple[tuple[str, ...], CpuSet], Excess] = {}

    def take(
        self, containers: Iterable[ExclusiveContainer], elapsed_seconds: float
    ) -> OverlapSample:
        """Take a sample, so long after the one before; 0 if it is the first."""
        used = self._counters.cpu_seconds()
        known, self._excess = self._excess, {}
        total_seconds, seconds, foreign = 0.0, dict[str, float](), set[str]()
        for cpus, group in by_cpus(containers):
            paths = tuple(one.path for one in group)
            own = [self._counters.cgroup_seconds(path, cpus) for path in paths]
            if None in own:  # a container has ended
                continue
            self._excess[paths, cpus] = excess = known.get((paths, cpus)) or Excess()
            whole_seconds = sum(used.get(cpu, 0.0) for cpu in cpus)
            others = excess.since_last(whole_seconds, sum(filter(None, own)))
            total_seconds += others
            seconds |= dict.fromkeys(paths, others)
            share = FOREIGN_SHARE + FOREIGN_SHARE_EACH * (len(cpus) - 1)
            if others > share * elapsed_seconds > 0:
                foreign.update(paths)
        return OverlapSample(total_seconds, seconds, frozenset(foreign))
