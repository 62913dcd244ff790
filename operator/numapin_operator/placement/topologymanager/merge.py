"""One set of NUMA nodes for all resources, as the topology policy demands.

The kubelet intersects every combination of the providers' hints and keeps the best intersection.
Which one is best does not depend on the order. A preferred one (all hints equal, all preferred)
comes before others, and the fittest of them first. Otherwise the best size is the largest that does
not exceed what the neediest provider needs, and of that size the fittest. So the sets are searched
by size, fittest first.
Source: Kubernetes v1.36, topologymanager, `HintMerger`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.topologymanager.device_hints import DeviceHints
from numapin_operator.placement.topologymanager.hints import (
    NOWHERE,
    CpuHints,
    Impossible,
    MemoryHints,
)
from numapin_operator.placement.topologymanager.intersections import Providers
from numapin_operator.placement.topologymanager.subset_search import Distances

Choose = Callable[[NumaMask], NumaMask]
"""Takes one of several NUMA nodes, each of which has all that is asked for."""


class MergedHint(NamedTuple):
    """The NUMA nodes that a container's resources should come from; None for any."""

    numa_nodes: NumaMask | None
    preferred: bool


@dataclass(frozen=True, slots=True)
class HintMerger:
    """The topology policy, all NUMA nodes, and distances if the nearest nodes are preferred."""

    policy: str
    everywhere: NumaMask
    distances: Distances | None = None

    def merge(
        self,
        cpu: CpuHints | Impossible | None,
        memory: MemoryHints | Impossible | None,
        choose: Choose | None = None,
        devices: tuple[DeviceHints | Impossible, ...] = (),
    ) -> MergedHint | None:
        """The best common set of NUMA nodes; None if the policy refuses it.

        A provider that is None has no preference. One that is `NOWHERE` has no sets: the others are
        merged without it, and nothing is preferred. Each resource of `devices` is a provider. Of
        single NUMA nodes that are preferred and equally near, `choose` takes one; without it the
        lowest is taken.
        """
        if self.policy == "None":
            return MergedHint(None, preferred=False)
        hints = Providers(
            cpu if isinstance(cpu, CpuHints) else None,
            memory if isinstance(memory, MemoryHints) else None,
            possible=cpu is not NOWHERE and memory is not NOWHERE and NOWHERE not in devices,
            devices=tuple([one for one in devices if one is not NOWHERE]) if devices else (),
        )
        if self.policy == "SingleNUMANode":
            return self._single(hints, choose)
        preferred = self._preferred(hints, choose)
        if preferred:
            return MergedHint(preferred, preferred=True)
        if self.policy == "Restricted":
            return None
        return MergedHint(self._best_other(hints) or self.everywhere, preferred=False)

    def _single(self, hints: Providers, choose: Choose | None) -> MergedHint | None:
        if not hints.possible:
            return None
        if hints.cpu is None and hints.memory is None and not hints.devices:
            return MergedHint(None, preferred=True)
        found = hints.preferred_single()
        if not found:
            return None
        if choose is not None:
            found = choose(hints.preferred_singles())
        return MergedHint(None if found == self.everywhere else found, preferred=True)

    def _preferred(self, hints: Providers, choose: Choose | None) -> NumaMask:
        if not hints.possible:
            return NO_NUMA_NODES
        if hints.cpu is None and hints.memory is None and not hints.devices:
            return self.everywhere
        if choose is not None and (found := self._nearest(hints.preferred_singles())):
            return choose(found)
        if self.distances is None and (found := hints.preferred_single()):
            return found
        for size in hints.preferred_sizes():
            sets = [hints.preferred_sets(size, self.distances).best(size)]
            sets += hints.preferred_groups(size)
            if best := self._fittest(sets):
                return best
        return NO_NUMA_NODES

    def _nearest(self, singles: NumaMask) -> NumaMask:
        """Those of single NUMA nodes that are nearest to themselves, if distances count."""
        distances = self.distances
        if distances is None or not singles:
            return singles
        least = min(distances[one][one] for one in members(singles))
        return numa_mask(one for one in members(singles) if distances[one][one] == least)

    def _best_other(self, hints: Providers) -> NumaMask:
        most = hints.neediest()
        largest = self.everywhere.bit_count()
        for size in (*range(most, 0, -1), *range(most + 1, largest + 1)):
            if best := self._fittest(hints.intersections(size, self.distances)):
                return best
        return NO_NUMA_NODES

    def _fittest(self, sets: Iterator[NumaMask] | list[NumaMask]) -> NumaMask:
        """Of sets of one size, the one with the nearest nodes, then the lowest; 0 for none."""
        return min(filter(None, sets), key=self._rank, default=NO_NUMA_NODES)

    def _rank(self, numa_nodes: NumaMask) -> tuple[int, int]:
        distances, listed = self.distances, list(members(numa_nodes))
        if distances is None:
            return 0, numa_nodes
        return sum(distances[one][other] for one in listed for other in listed), numa_nodes
