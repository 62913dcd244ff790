"""The sets of NUMA nodes that could give what is asked, described rather than listed.

The kubelet lists every set of NUMA nodes that has enough; their number doubles with each node. Here
a provider states what a set must hold, and the merge searches for one.
"""

from bisect import bisect_left
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.cpumanager.take import CpuTaker
from numapin_operator.placement.masks import NO_NUMA_NODES, CpuMask, NumaMask, members
from numapin_operator.placement.requests import Amounts
from numapin_operator.placement.topologymanager.subset_search import (
    Distances,
    SubsetSearch,
    Weights,
)

Reusable = Mapping[NumaMask, Mapping[str, int]]
"""What init containers leave behind: NUMA nodes to resource to bytes."""


class Impossible(Enum):
    """A provider that has no set of NUMA nodes to offer."""

    NOWHERE = "nowhere"


NOWHERE = Impossible.NOWHERE


class CpuHints(NamedTuple):
    """Where so many CPUs could come from.

    A set of NUMA nodes is sufficient if it contains `required` (where the pod's init containers
    run) and has at least `wanted` CPUs `free`. It is preferred if it has `fewest` nodes, the least
    that the empty machine needs, or (with align-by-socket) spans exactly `sockets` sockets.
    """

    cpu_groups: CpuGroups
    free: Weights
    wanted: int
    required: NumaMask
    fewest: int
    sockets: int | None

    @property
    def numa_nodes(self) -> tuple[int, ...]:
        """The NUMA nodes that have CPUs at all."""
        return tuple(self.cpu_groups.numa_nodes)

    @property
    def needs(self) -> tuple[tuple[Weights, int], ...]:
        """What a set must hold."""
        return ((self.free, self.wanted),)

    def prefers(self, numa_nodes: NumaMask) -> bool:
        """True if a sufficient set is a preferred one."""
        if numa_nodes.bit_count() == self.fewest:
            return True
        return self.sockets is not None and self.cpu_groups.sockets_in(numa_nodes) == self.sockets

    def smallest(self) -> int:
        """The size of the smallest sufficient sets."""
        kept = sum(self.free.get(numa_node, 0) for numa_node in members(self.required))
        others = (
            free for numa_node, free in self.free.items() if not self.required >> numa_node & 1
        )
        size = self.required.bit_count()
        for free in sorted(others, reverse=True):
            if size and kept >= self.wanted:
                break
            kept += free
            size += 1
        return size


def cpu_hints_of(
    taker: CpuTaker, free: CpuMask, reusable: CpuMask, wanted: int
) -> CpuHints | Impossible:
    """Where a policy can take `wanted` CPUs from."""
    there = taker.countable(free | reusable)
    groups = taker.cpu_groups
    found = cpu_hints(groups, there, there & reusable, wanted, by_socket=taker.align_by_socket)
    if isinstance(found, CpuHints) and taker.capacities != groups.capacities:
        return found._replace(fewest=_fewest(taker.capacities, wanted))
    return found


def cpu_hints(
    cpu_groups: CpuGroups,
    free: CpuMask,
    reusable: CpuMask,
    wanted: int,
    *,
    by_socket: bool,
) -> CpuHints | Impossible:
    """Where `wanted` CPUs could come from. Source: Kubernetes v1.36, `generateCPUTopologyHints`.

    Args:
        cpu_groups: the machine.
        free: CPUs that are free.
        reusable: those that init containers leave, which count too; their NUMA nodes are required.
        wanted: CPUs wanted.
        by_socket: whether CPUs of one socket are aligned.
    """
    counts = {
        numa_node: (mask & (free | reusable)).bit_count()
        for numa_node, mask in cpu_groups.numa_nodes.items()
    }
    if sum(counts.values()) < wanted:
        return NOWHERE
    fewest = _fewest(cpu_groups.capacities, wanted)
    return CpuHints(
        cpu_groups=cpu_groups,
        free=counts,
        wanted=wanted,
        required=cpu_groups.numa_nodes_of(reusable) if reusable else NO_NUMA_NODES,
        fewest=fewest,
        sockets=_sockets(cpu_groups, fewest) if by_socket else None,
    )


def _fewest(capacities: tuple[int, ...], wanted: int) -> int:
    """How many NUMA nodes the empty machine needs for so many CPUs; all if they are too few."""
    return min(bisect_left(capacities, wanted) + 1, len(capacities))


def _sockets(cpu_groups: CpuGroups, fewest: int) -> int | None:
    nodes_in_socket = len(cpu_groups.numa_nodes) // len(cpu_groups.sockets)
    return -(-fewest // nodes_in_socket) if nodes_in_socket else None


class MemoryHints(NamedTuple):
    """Where so much memory and so many huge pages could be bound.

    That is: each NUMA node of `singles`; each of `groups`, which are bound together already; and
    every set of `loose` nodes, to which nothing is bound, that holds all of `asked`. Sets of
    `fewest` nodes are preferred. The kubelet repeats the same sets for each resource asked for.
    """

    asked: Amounts
    free: Mapping[str, Weights]
    reusable: Reusable
    singles: NumaMask
    groups: tuple[NumaMask, ...]
    loose: tuple[int, ...]
    fewest: int

    @property
    def needs(self) -> tuple[tuple[Weights, int], ...]:
        """What a set of loose nodes must hold."""
        return tuple((self.free.get(name, {}), size) for name, size in self.asked)

    @property
    def copies(self) -> int:
        """How often the kubelet lists these sets."""
        return len(self.asked)

    def loose_sets(
        self, required: NumaMask = NO_NUMA_NODES, distances: Distances | None = None
    ) -> SubsetSearch:
        """The search among sets of loose nodes."""
        return SubsetSearch(self.loose, self.needs, required=required, distances=distances)

    def smallest(self) -> int:
        """The size of the smallest sets; 0 if there is none."""
        found = self.best()
        return found.bit_count()

    def best(self, required: NumaMask = NO_NUMA_NODES) -> NumaMask:
        """The smallest set that contains `required`, then the lowest numbers; 0 for none."""
        for numa_node in members(self.singles):
            single = NumaMask(1 << numa_node)
            if not required & ~single:
                return single
        sets = [group for group in self.groups if not required & ~group]
        if loose := self.loose_sets(required).smallest(first=2):
            sets.append(loose)
        return min(sets, key=lambda mask: (mask.bit_count(), mask), default=NO_NUMA_NODES)


def hint_of_bound(mems: NumaMask) -> MemoryHints | None:
    """The hint of memory that is bound already: where it is; None if there is none."""
    if not mems:
        return None
    alone = mems.bit_count() == 1
    return MemoryHints(
        asked=(),
        free={},
        reusable={},
        singles=mems if alone else NumaMask(0),
        groups=() if alone else (mems,),
        loose=(),
        fewest=mems.bit_count(),
    )
