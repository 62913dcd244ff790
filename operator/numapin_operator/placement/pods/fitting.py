"""The largest smaller request with which a refused pod would have been placed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from numapin_operator.placement.cpumanager.pool import CpuPool
from numapin_operator.placement.devicemanager.pool import DevicePool
from numapin_operator.placement.errors import PlacementError, TopologyAffinityError
from numapin_operator.placement.masks import CpuMask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.pods.near import as_required
from numapin_operator.placement.pods.pod import PodPlacement
from numapin_operator.placement.policy.node_policy import NodePolicy
from numapin_operator.placement.requests import PodView, exclusive_cpus, least_pod_cpus, pod_cpus

MOST_TRIED: Final = 32
MOST_TRIED_IN_PLAN: Final = 128
"""Requests that are tried for one refusal, and for all those of one plan."""


@dataclass(slots=True)
class Trials:
    """How many more requests may be tried."""

    left: int = MOST_TRIED


@dataclass(frozen=True, slots=True)
class _Varied:
    """A pod of which one number of CPUs varies.

    Attributes:
        wanted: the number that was refused.
        least: the smallest that the pod may ask for.
        container: the container whose number it is; None if it is that of the pod as a whole.
        is_hinted: whether NUMA nodes are searched for just this number, and others have no say.
        with_cpus: makes the pod that asks for another number.
    """

    wanted: int
    least: int
    container: str | None
    is_hinted: bool
    with_cpus: Callable[[int], PodView]


@dataclass(frozen=True, slots=True)
class Fitting:
    """Asks the planner what would fit on a node, which stays unchanged."""

    policy: NodePolicy
    cpus: CpuPool
    memory: MemoryTables | None
    devices: DevicePool | None

    def most_cpus(self, pod: PodView, container: str | None, trials: Trials) -> int | None:
        """The most CPUs, fewer than were refused, with which the pod would be placed now.

        All else that it asks for stays as it is. What varies is the request of the container that
        was refused. If the pod was refused as a whole, that is its own request, or that of its only
        exclusive container.

        Args:
            pod: the pod that was refused.
            container: the container that was refused; None if it was the pod as a whole.
            trials: how much may be tried; what was tried is taken off.

        Returns:
            None if no smaller number would do, or it was not found within the trials.
        """
        varied = _varied(self.policy, pod, container)
        if varied is None:
            return None
        mine = Trials(min(MOST_TRIED, trials.left))
        trials.left -= mine.left
        try:
            with as_required(self.policy, self.cpus, self.memory, pod):
                return next(self._fitting(varied, mine), None)
        finally:
            trials.left += mine.left

    def _fitting(self, varied: _Varied, trials: Trials) -> Iterator[int]:
        """The numbers that fit, from the largest, as far as the trials go.

        Where NUMA nodes are searched for a number, those that have enough for it have enough for
        each smaller one that needs as many NUMA nodes: what the smallest is refused for, all are.
        """
        for counts in self._promising(varied):
            if varied.is_hinted and self._is_strict and len(counts) > 1 and trials.left:
                refused = self._refused(varied, counts[-1], trials)
                for_its_nodes = isinstance(refused, TopologyAffinityError)
                if refused and for_its_nodes and refused.container == varied.container:
                    continue
            for count in counts:
                if not trials.left:
                    return
                if self._refused(varied, count, trials) is None:
                    yield count

    @property
    def _is_strict(self) -> bool:
        """Whether numbers are refused for their NUMA nodes, by how many of these they need."""
        match self.policy.hint_merger.policy:
            case "SingleNUMANode":
                return True
            case "Restricted":
                return not self.policy.cpu_taker.align_by_socket
            case _:
                return False

    def _promising(self, varied: _Varied) -> Iterator[range]:
        """Smaller numbers from the largest, without those that cannot fit.

        Each range is of numbers that need as many NUMA nodes, where these are searched for them.
        """
        taker, groups = self.policy.cpu_taker, self.policy.cpu_groups
        most = min(varied.wanted - 1, self._most_to_give())
        step = groups.threads if taker.whole_cores_only and groups.uniform else 1
        for first, last in self._aligned() if varied.is_hinted else [(most, 1)]:
            least = -(-max(last, varied.least) // step) * step
            yield range(min(first, most) // step * step, least - 1, -step)

    def _most_to_give(self) -> int:
        """The free CPUs, without the one that the shared pool needs."""
        free, pool = self.cpus.free, self.cpus
        if self.policy.cpu_taker.keeps_cores_whole:
            free = self.policy.cpu_groups.whole_cores(free)
        elif self.policy.cpu_taker.whole_cores_only and self.policy.cpu_groups.uniform:
            free = CpuMask(free & pool.free_whole_cores)
        empties = not pool.shared & ~free and not pool.exclusive_only
        keeps_one = empties and not self.policy.quirks.empties_shared_pool
        return free.bit_count() - (1 if keeps_one else 0)

    def _aligned(self) -> Iterator[tuple[int, int]]:
        """The numbers for which the topology policy may find NUMA nodes, as ranges from the top.

        Under Restricted a number is aligned on n NUMA nodes only if n - 1 could not hold it on an
        empty machine; aligned by socket it may be on others too.
        """
        taker, groups = self.policy.cpu_taker, self.policy.cpu_groups
        free = taker.countable(self.cpus.free)
        there = sorted(
            ((mask & free).bit_count() for mask in groups.numa_nodes.values()), reverse=True
        )
        if not self._is_strict:
            yield sum(there), 1
        elif self.policy.hint_merger.policy == "SingleNUMANode":
            yield there[0], 1
        else:
            fewer = (0, *taker.capacities)
            ranges = zip(accumulate(there), fewer, strict=False)
            yield from ((total, below + 1) for total, below in reversed(list(ranges)))

    def _refused(self, varied: _Varied, count: int, trials: Trials) -> PlacementError | None:
        """Why another number would be refused too; None if it would be placed."""
        trials.left -= 1
        memory = self.memory.copy() if self.memory is not None else None
        devices = self.devices.copy() if self.devices is not None else None
        pod = varied.with_cpus(count)
        try:
            PodPlacement(self.policy, self.cpus.copy(), memory, devices, pod).run()
        except PlacementError as refused:
            return refused
        return None


def _varied(policy: NodePolicy, pod: PodView, container: str | None) -> _Varied | None:
    """What of a refused pod varies; None if that is not clear, or it asks for no CPUs."""
    exclusive = [one for one in pod.containers if not one.ended and exclusive_cpus(pod, one)]
    if container is None and pod.pod_level is not None:
        least = least_pod_cpus(pod)
        return _Varied(pod_cpus(pod), least, None, True, lambda n: _as_whole(pod, n))
    chosen = [one.name for one in exclusive if container in (None, one.name)]
    if len(chosen) != 1:
        return None
    (name,) = chosen
    wanted = next(exclusive_cpus(pod, one) for one in exclusive if one.name == name)
    is_alone = policy.spec.topology.scope == "Container" or len(exclusive) == 1
    return _Varied(wanted, 1, container, is_alone, lambda n: _with_cpus(pod, name, n))


def _as_whole(pod: PodView, count: int) -> PodView:
    assert pod.pod_level is not None
    return replace(pod, pod_level=replace(pod.pod_level, cpu_millis=count * 1000))


def _with_cpus(pod: PodView, name: str, count: int) -> PodView:
    containers = tuple(
        replace(one, cpu_millis=count * 1000) if one.name == name else one for one in pod.containers
    )
    return replace(pod, containers=containers)
