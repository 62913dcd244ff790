"""CPUs in even shares from as many NUMA nodes as a request needs.

The kubelet tries every combination of NUMA nodes and, for the remainder, every subset of each
combination; it keeps the first that leaves free CPUs most even (lowest standard deviation). Every
combination leaves the same number of CPUs, so the lowest sum of squares wins. That one is found
directly: the NUMA nodes with most free CPUs, and for the remainder again those with most.
Source: Kubernetes v1.36, cpumanager, `takeByTopologyNUMADistributed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Final

from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups
from numapin_operator.placement.cpumanager.packed import (
    Packing,
    Ranked,
    sorted_numa_nodes,
    take_packed,
)
from numapin_operator.placement.cpumanager.remainder import Leftover, best_leftover
from numapin_operator.placement.errors import NotEnoughCpusError
from numapin_operator.placement.kubelet_quirks import overwritten_choice
from numapin_operator.placement.masks import NO_CPUS, CpuMask

_MOST_TRIED: Final = 4096
"""Combinations tried one by one if the order of NUMA nodes decides about the remainder."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """NUMA nodes that give `share` CPUs each, and those that give the remainder.

    Both are positions in the list of NUMA nodes with free CPUs; `spread` is the change of the sum
    of squares of free CPUs.
    """

    numa_nodes: tuple[int, ...]
    share: int
    leftover: Leftover
    spread: int


def take_distributed(
    cpu_groups: CpuGroups, free: CpuMask, count: int, group: int, packing: Packing
) -> CpuMask:
    """Choose `count` CPUs, in groups of `group`, evenly from the fewest NUMA nodes that allow it.

    The choice is packed if no number of NUMA nodes allows even shares, or if `count` is no multiple
    of `group`. With `packing.one_socket` it is in one socket where one has room: on the fewest of
    its NUMA nodes, in shares as even as these have them.

    Raises:
        NotEnoughCpusError: `free` holds fewer than `count`, or the quirk
            `refuses_overwritten_choice` is set and applies.
    """
    if count <= 0 or count % group or count > free.bit_count():
        return take_packed(cpu_groups, free, count, packing)
    room = _socket_with_room(cpu_groups, free, count, group) if packing.one_socket else NO_CPUS
    there = room or free
    ranked = list(sorted_numa_nodes(cpu_groups, there))
    if len(ranked) == 1:
        return take_packed(cpu_groups, there, count, packing)
    choice = _first_choice(cpu_groups, ranked, count, group, uneven=room != NO_CPUS)
    if choice is None:
        return take_packed(cpu_groups, there, count, packing)
    return _Distributor(cpu_groups, there, ranked, packing).hand_out(choice, count, group)


def _socket_with_room(cpu_groups: CpuGroups, free: CpuMask, count: int, group: int) -> CpuMask:
    """The free CPUs of one socket that has enough; none if no socket has.

    It is the one that gives them from the fewest NUMA nodes, then that with the most even rest.
    Source: Kubernetes v1.37, cpumanager, `takeByTopologyNUMADistributed`, which prefers one socket
    among as many NUMA nodes as it needs in any; here one socket comes first whatever it needs.
    """
    found: list[tuple[int, int, tuple[int, ...], CpuMask]] = []
    order = [numa_node for _, numa_node, _ in sorted_numa_nodes(cpu_groups, free)]
    for socket in cpu_groups.sockets.values():
        room = free & socket
        room = cpu_groups.whole_cores(room) if group > 1 else room
        if room.bit_count() < count:
            continue
        ranked = list(sorted_numa_nodes(cpu_groups, room))
        choice = _first_choice(cpu_groups, ranked, count, group, uneven=True)
        if choice is not None:
            places = tuple(order.index(ranked[at][1]) for at in choice.numa_nodes)
            found.append((len(places), choice.spread, places, room))
    return min(found)[3] if found else NO_CPUS


def _first_choice(
    cpu_groups: CpuGroups, ranked: Sequence[Ranked], count: int, group: int, *, uneven: bool
) -> _Choice | None:
    """The best choice from the fewest NUMA nodes that allow one; None if no number of them does."""
    sizes = [size for size, _, _ in ranked]
    for numa_nodes in _numbers_of_nodes(cpu_groups, count, group, len(ranked)):
        choice = _choose(sizes, numa_nodes, count, group, uneven=uneven)
        if choice is not None:
            return choice
    return None


def _numbers_of_nodes(cpu_groups: CpuGroups, count: int, group: int, with_room: int) -> range:
    groups_in_all = -(-cpu_groups.cpus.bit_count() // group)
    groups_in_node = -(-groups_in_all // len(cpu_groups.numa_nodes))
    groups = -(-count // group)
    return range(-(-groups // groups_in_node), min(groups, with_room) + 1)


def _choose(
    sizes: Sequence[int], numa_nodes: int, count: int, group: int, *, uneven: bool
) -> _Choice | None:
    """The best `numa_nodes` NUMA nodes for even shares; None if none can give them.

    If shares may be `uneven`, each gives as much as the one with least can, and others the rest.

    The nodes with most free CPUs leave the most even rest. The exception is a remainder that few
    nodes should give in several rounds: then the order matters, and all combinations are tried.
    """
    fullest = sorted(range(len(sizes)), key=lambda at: (-sizes[at], at))[:numa_nodes]
    choice = _weigh(sizes, tuple(sorted(fullest)), count, group, uneven=uneven)
    if choice is None or not choice.leftover.depends_on_order or sizes == sorted(sizes):
        return choice
    if comb(len(sizes), numa_nodes) > _MOST_TRIED:
        return choice
    tried = (
        _weigh(sizes, each, count, group, uneven=uneven)
        for each in combinations(range(len(sizes)), numa_nodes)
    )
    return min((each for each in tried if each), key=lambda each: each.spread)


def _weigh(
    sizes: Sequence[int], numa_nodes: tuple[int, ...], count: int, group: int, *, uneven: bool
) -> _Choice | None:
    share = count // len(numa_nodes) // group * group
    if uneven:
        share = min(share, min(sizes[at] for at in numa_nodes) // group * group)
    if any(sizes[at] < share for at in numa_nodes):
        return None
    if sum(sizes[at] // group for at in numa_nodes) * group < count:
        return None
    rests = [(at, sizes[at] - share) for at in numa_nodes]
    leftover = best_leftover(rests, (count - share * len(numa_nodes)) // group, group)
    even = sum(rest * rest - sizes[at] * sizes[at] for at, rest in rests)
    return _Choice(numa_nodes, share, leftover, even + leftover.spread)


class _Distributor:
    """Takes CPUs node by node, as a choice says."""

    def __init__(
        self, cpu_groups: CpuGroups, free: CpuMask, ranked: Sequence[Ranked], packing: Packing
    ) -> None:
        self._cpu_groups, self._free, self._packing = cpu_groups, free, packing
        self._masks = [mask for _, _, mask in ranked]
        self._sizes = [size for size, _, _ in ranked]

    def hand_out(self, choice: _Choice, count: int, group: int) -> CpuMask:
        """The CPUs of the choice as the kubelet remembers it, see `overwritten_choice`."""
        if len(choice.numa_nodes) == 1:
            return self._take_from(choice.numa_nodes[0], NO_CPUS, count)
        even = _evenly_left(self._sizes, choice)
        numa_nodes = overwritten_choice(
            choice.numa_nodes, range(len(self._sizes)), search_stopped=even
        )
        leftover = choice.leftover
        turns = overwritten_choice(leftover.chosen, leftover.candidates, search_stopped=False)
        same = numa_nodes == choice.numa_nodes
        overwritten = choice if same else replace(choice, numa_nodes=numa_nodes)
        taken = self._take(overwritten, turns, count, group)
        if taken.bit_count() == count:
            return taken
        if self._packing.quirks.refuses_overwritten_choice:
            raise NotEnoughCpusError(count, taken.bit_count(), " on the NUMA nodes chosen")
        return self._take(choice, choice.leftover.chosen, count, group)

    def _take(self, choice: _Choice, turns: Sequence[int], count: int, group: int) -> CpuMask:
        taken = NO_CPUS
        for at in choice.numa_nodes:
            taken |= self._take_from(at, taken, choice.share)
        rest = (count - choice.share * len(choice.numa_nodes)) // group
        while rest:
            before = rest
            for at in turns:
                if rest and (got := self._take_from(at, taken, group)):
                    taken |= got
                    rest -= 1
            if rest == before:
                break
        return taken

    def _take_from(self, at: int, taken: CpuMask, count: int) -> CpuMask:
        there = self._free & self._masks[at] & ~taken
        if there.bit_count() < count:
            return NO_CPUS
        return take_packed(self._cpu_groups, there, count, self._packing)


def _evenly_left(sizes: Sequence[int], choice: _Choice) -> bool:
    """True if all NUMA nodes have the same number of free CPUs after the choice."""
    left = list(sizes)
    for at in choice.numa_nodes:
        left[at] -= choice.share
    for at, groups in choice.leftover.given:
        left[at] -= groups
    return len(set(left)) <= 1
