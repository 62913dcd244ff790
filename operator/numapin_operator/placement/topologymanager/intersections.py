"""What CPU and memory hints have in common, of one size: the preferred sets, and the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.topologymanager.hints import CpuHints, MemoryHints
from numapin_operator.placement.topologymanager.subset_search import (
    Distances,
    SubsetSearch,
    Weights,
)

_MOST_STEPS: Final = 4096

Load = tuple[int, ...]


class Providers(NamedTuple):
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

    def preferred_singles(self) -> NumaMask:
        """Every single NUMA node that all providers prefer."""
        cpu, memory = self.cpu, self.memory
        if not self.preferred_single():
            return NO_NUMA_NODES
        if cpu is None:
            return memory.singles if memory is not None else NO_NUMA_NODES
        return numa_mask(
            numa_node
            for numa_node, free in cpu.free.items()
            if free >= cpu.wanted
            and not cpu.required & ~(1 << numa_node)
            and (memory is None or memory.singles >> numa_node & 1)
        )

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
                accept=lambda numa_nodes: _is_intersection(numa_nodes, cpu, memory),
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


@dataclass(slots=True)
class _Side:
    """One provider's set: what it can still give up, and the nodes that it must contain."""

    slack: list[int]
    fixed: NumaMask


def _is_intersection(numa_nodes: NumaMask, cpu: CpuHints | None, memory: MemoryHints) -> bool:
    """True if sets of loose nodes and a CPU set exist whose intersection is `numa_nodes`.

    Every other loose node must be missing from at least one of the sets (memory has one set for
    each resource asked for), and every set must still hold what is asked: a small packing problem.
    """
    free = [weights for weights, _ in memory.needs]
    slack = [
        sum(weights.get(numa_node, 0) for numa_node in memory.loose) - need
        for weights, need in memory.needs
    ]
    if min(slack, default=0) < 0:
        return False
    others = [numa_node for numa_node in memory.loose if not numa_nodes >> numa_node & 1]
    sides = [_Side(list(slack), NO_NUMA_NODES) for _ in range(memory.copies)]
    loads = {
        numa_node: tuple(weights.get(numa_node, 0) for weights in free) for numa_node in others
    }
    if cpu is None:
        return _leaves_out(others, sides, [loads] * len(sides))
    # A node without CPUs is in no CPU set, so any other set may contain it.
    others = [numa_node for numa_node in others if numa_node in cpu.cpu_groups.numa_nodes]
    cpu_side = _Side([sum(cpu.free.values()) - cpu.wanted], cpu.required)
    cpu_loads: dict[int, Load] = {numa_node: (cpu.free.get(numa_node, 0),) for numa_node in others}
    return _leaves_out(others, [cpu_side, *sides], [cpu_loads, *[loads] * len(sides)])


def _leaves_out(
    numa_nodes: Sequence[int], sides: Sequence[_Side], loads: Sequence[dict[int, Load]]
) -> bool:
    """True if every node can be left out of some side, within what that side can give up."""
    steps = 0
    order = sorted(
        numa_nodes, key=lambda numa_node: (-max(sum(load[numa_node]) for load in loads), numa_node)
    )

    def place(at: int) -> bool:
        nonlocal steps
        if at == len(order):
            return True
        steps += 1
        if steps > _MOST_STEPS:
            return False
        numa_node = order[at]
        for side, load in zip(sides, loads, strict=True):
            if side.fixed >> numa_node & 1:
                continue
            if all(have >= part for have, part in zip(side.slack, load[numa_node], strict=True)):
                _spend(side, load[numa_node], -1)
                if place(at + 1):
                    return True
                _spend(side, load[numa_node], 1)
        return False

    return place(0)


def _spend(side: _Side, load: Load, sign: int) -> None:
    side.slack[:] = [have + sign * part for have, part in zip(side.slack, load, strict=True)]
