"""One set of NUMA nodes for all resources, as the topology policy demands.

The kubelet intersects every combination of the providers' hints and keeps the best intersection.
Which one is best does not depend on the order. A preferred one (all hints equal, all preferred)
comes before others, and the fittest of them first. Otherwise the best size is the largest that does
not exceed what the neediest provider needs, and of that size the fittest. So the sets are searched
by size, fittest first.
Source: Kubernetes v1.36, topologymanager, `HintMerger`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.topologymanager.hints import (
    NOWHERE,
    CpuHints,
    Impossible,
    MemoryHints,
)
from numapin_operator.placement.topologymanager.intersections import is_intersection
from numapin_operator.placement.topologymanager.subset_search import (
    Distances,
    SubsetSearch,
    Weights,
)


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
        self, cpu: CpuHints | Impossible | None, memory: MemoryHints | Impossible | None
    ) -> MergedHint | None:
        """The best common set of NUMA nodes; None if the policy refuses it.

        A provider that is None has no preference. One that is `NOWHERE` has no sets: the other is
        merged without it, and nothing is preferred.
        """
        if self.policy == "None":
            return MergedHint(None, preferred=False)
        hints = _Providers(
            cpu if isinstance(cpu, CpuHints) else None,
            memory if isinstance(memory, MemoryHints) else None,
            possible=cpu is not NOWHERE and memory is not NOWHERE,
        )
        if self.policy == "SingleNUMANode":
            return self._single(hints)
        preferred = self._preferred(hints)
        if preferred:
            return MergedHint(preferred, preferred=True)
        if self.policy == "Restricted":
            return None
        return MergedHint(self._best_other(hints) or self.everywhere, preferred=False)

    def _single(self, hints: "_Providers") -> MergedHint | None:
        if not hints.possible:
            return None
        if hints.cpu is None and hints.memory is None:
            return MergedHint(None, preferred=True)
        found = hints.preferred_single()
        if not found:
            return None
        return MergedHint(None if found == self.everywhere else found, preferred=True)

    def _preferred(self, hints: "_Providers") -> NumaMask:
        if not hints.possible:
            return NO_NUMA_NODES
        if hints.cpu is None and hints.memory is None:
            return self.everywhere
        if self.distances is None and (found := hints.preferred_single()):
            return found
        for size in hints.preferred_sizes():
            sets = [hints.preferred_sets(size, self.distances).best(size)]
            sets += hints.preferred_groups(size)
            if best := self._fittest(sets):
                return best
        return NO_NUMA_NODES

    def _best_other(self, hints: "_Providers") -> NumaMask:
        most = hints.neediest()
        largest = self.everywhere.bit_count()
        for size in (*range(most, 0, -1), *range(most + 1, largest + 1)):
            if best := self._fittest(hints.intersections(size, self.distances)):
                return best
        return NO_NUMA_NODES

    def _fittest(self, sets: "Iterator[NumaMask] | list[NumaMask]") -> NumaMask:
        """Of sets of one size, the one with the nearest nodes, then the lowest; 0 for none."""
        return min(filter(None, sets), key=self._rank, default=NO_NUMA_NODES)

    def _rank(self, numa_nodes: NumaMask) -> tuple[int, int]:
        distances, listed = self.distances, list(members(numa_nodes))
        if distances is None:
            return 0, numa_nodes
        return sum(distances[one][other] for one in listed for other in listed), numa_nodes


class _Providers(NamedTuple):
    """The providers that have sets to offer; `possible` is False if another has none."""

    cpu: CpuHints | None
    memory: MemoryHints | None
    possible: bool

    def preferred_single(self) -> NumaMask:
        """The lowest single NUMA node that all providers prefer; 0 if there is none."""
        cpu, memory = self.cpu, self.memory
        if (cpu is not None and cpu.fewest > 1) or (memory is not None and memory.fewest > 1):
            return NO_NUMA_NODES
        if cpu is None:
            lowest = next(members(memory.singles), None) if memory is not None else None
            return NO_NUMA_NODES if lowest is None else NumaMask(1 << lowest)
        for numa_node, free in cpu.free.items():
            mask = NumaMask(1 << numa_node)
            if (
                free >= cpu.wanted
                and not cpu.required & ~mask
                and (memory is None or memory.singles & mask)
            ):
                return mask
        return NO_NUMA_NODES

    def preferred_sizes(self) -> range:
        """The sizes that preferred sets can have, smallest first."""
        if self.memory is not None:
            return range(self.memory.fewest, self.memory.fewest + 1)
        if self.cpu is None:
            return range(0)
        last = self.cpu.fewest if self.cpu.sockets is None else len(self.cpu.numa_nodes)
        return range(self.cpu.fewest, last + 1)

    def preferred_sets(self, size: int, distances: Distances | None) -> SubsetSearch:
        """The search for sets that all providers prefer, memory's groups excepted."""
        memory, cpu = self.memory, self.cpu
        numa_nodes: tuple[int, ...]
        needs: tuple[tuple[Weights, int], ...] = ()
        if memory is None:
            numa_nodes = cpu.numa_nodes if cpu else ()
        elif size == 1:
            numa_nodes = tuple(members(memory.singles))
        else:
            numa_nodes, needs = memory.loose, memory.needs
        if cpu is None:
            return SubsetSearch(numa_nodes, needs, distances=distances)
        return SubsetSearch(
            numa_nodes=tuple(
                numa_node for numa_node in numa_nodes if numa_node in cpu.cpu_groups.numa_nodes
            ),
            needs=needs + cpu.needs,
            required=cpu.required,
            accept=cpu.prefers,
            distances=distances,
        )

    def preferred_groups(self, size: int) -> list[NumaMask]:
        """Memory's groups of this size that are also preferred for the CPUs."""
        groups = self.memory.groups if self.memory else ()
        return [
            group
            for group in groups
            if group.bit_count() == size and (self.cpu is None or _serves(self.cpu, group))
        ]

    def neediest(self) -> int:
        """How many NUMA nodes the neediest provider needs."""
        return max((h.smallest() for h in (self.cpu, self.memory) if h is not None), default=0)

    def intersections(self, size: int, distances: Distances | None) -> Iterator[NumaMask]:
        """The fittest intersection of each kind: single nodes, parts of groups, loose nodes."""
        cpu, memory = self.cpu, self.memory
        if memory is None:
            if cpu is not None:
                yield SubsetSearch(
                    cpu.numa_nodes, cpu.needs, cpu.required, distances=distances
                ).best(size)
            return
        with_cpus = numa_mask(cpu.numa_nodes) if cpu else NumaMask(-1)
        if size == 1:
            yield from (
                NumaMask(1 << numa_node) for numa_node in members(memory.singles & with_cpus)
            )
        for group in memory.groups:
            yield _within_group(cpu, group, size, distances)
        if memory.copies == 1 and cpu is None:
            yield memory.loose_sets(distances=distances).best(size) if size > 1 else NO_NUMA_NODES
        elif memory.loose_sets().smallest():
            yield SubsetSearch(
                numa_nodes=tuple(
                    numa_node for numa_node in memory.loose if with_cpus >> numa_node & 1
                ),
                accept=lambda numa_nodes: is_intersection(numa_nodes, cpu, memory),
                distances=distances,
            ).best(size)


def _serves(cpu: CpuHints, numa_nodes: NumaMask) -> bool:
    """True if a set is preferred for the CPUs."""
    inside = not numa_nodes & ~numa_mask(cpu.numa_nodes) and not cpu.required & ~numa_nodes
    enough = sum(cpu.free.get(numa_node, 0) for numa_node in members(numa_nodes)) >= cpu.wanted
    return inside and enough and cpu.prefers(numa_nodes)


def _within_group(
    cpu: CpuHints | None, group: NumaMask, size: int, distances: Distances | None
) -> NumaMask:
    """A part of a group that a CPU set can leave: one that has enough with all other nodes."""
    if cpu is None:
        return group if group.bit_count() == size else NO_NUMA_NODES
    outside = sum(free for numa_node, free in cpu.free.items() if not group >> numa_node & 1)
    return SubsetSearch(
        numa_nodes=tuple(
            numa_node for numa_node in members(group) if numa_node in cpu.cpu_groups.numa_nodes
        ),
        needs=((cpu.free, max(0, cpu.wanted - outside)),),
        required=cpu.required & group,
        distances=distances,
    ).best(size)
