"""NUMA nodes for CPUs and NUMA nodes for memory that lie together, where one set cannot be both."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Final

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, members, numa_mask
from numapin_operator.placement.topologymanager.cheapest_set import Prices, Wanted, cheapest_set
from numapin_operator.placement.topologymanager.subset_search import Distances

_MOST_LISTED: Final = 128
"""Sets that are tried one by one; of more, those around the fullest NUMA nodes."""

_MOST_AROUND: Final = 12
"""NUMA nodes around which sets are tried."""

_APART: Final = 1 << 40
"""More than any sum of distances: what a NUMA node costs that is not in the other set."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """A search for the NUMA nodes of CPUs beside which the memory can be.

    The best pair of sets has most NUMA nodes in common, then the smallest sum of distances from
    each of the one to each of the other, then the CPUs with the smallest sum of `rank`, then those
    of the lowest bit mask. It is exact while one of the sets has few enough choices; with more, as
    on a machine of 30 NUMA nodes, those around the fullest NUMA nodes are tried.
    """

    cpus: Wanted
    memory: Wanted
    distances: Distances
    rank: Mapping[int, int]

    def best(self) -> NumaMask:
        """The NUMA nodes for the CPUs; 0 if there are none for them, or none for the memory.

        Answers are remembered: while smaller requests of one container are tried, the containers
        before it ask the same again and again.
        """
        return _remembered(_Question(self._values(), self))

    def search(self) -> NumaMask:
        """The same, without what is remembered."""
        cpus, memory = _choices(self.cpus), _choices(self.memory)
        if memory <= cpus:
            pairs = (
                (self._cpus_beside(chosen), chosen) for chosen in self._sets(self.memory, memory)
            )
        else:
            pairs = (
                (chosen, self._memory_beside(chosen)) for chosen in self._sets(self.cpus, cpus)
            )
        found = ((self._key(*pair), pair[0]) for pair in pairs if all(pair))
        return min(found, default=(None, NO_NUMA_NODES))[1]

    def _values(self) -> tuple[object, ...]:
        """All that the answer depends on, as values that can be compared."""
        both = self.cpus, self.memory
        needs = ((tuple(held.items()), need) for one in both for held, need in one.needs)
        asked = (value for one in both for value in (one.numa_nodes, one.size, len(one.needs)))
        rows = ((one, tuple(row.items())) for one, row in self.distances.items())
        return (*asked, *needs, *rows, tuple(self.rank.items()))

    def _sets(self, wanted: Wanted, choices: int) -> Iterator[NumaMask]:
        if choices <= _MOST_LISTED:
            yield from (
                numa_mask(each)
                for each in combinations(wanted.numa_nodes, wanted.size)
                if _holds(wanted, each)
            )
            return
        around = (
            cheapest_set(wanted, {other: self.distances[one][other] for other in wanted.numa_nodes})
            for one in _fullest(wanted)
        )
        yield from dict.fromkeys(around)

    def _cpus_beside(self, memory: NumaMask) -> NumaMask:
        there = tuple(members(memory))
        wide = max(1, *map(abs, self.rank.values())) * (len(self.rank) + 1) * 2
        prices: Prices = {
            one: (_APART * (one not in there) + sum(self.distances[one][other] for other in there))
            * wide
            + self.rank[one]
            for one in self.cpus.numa_nodes
        }
        return cheapest_set(self.cpus, prices)

    def _memory_beside(self, cpus: NumaMask) -> NumaMask:
        weights = dict.fromkeys(members(cpus), 1)
        return cheapest_set(
            self.memory, prices_beside(weights, self.memory.numa_nodes, self.distances)
        )

    def _key(self, cpus: NumaMask, memory: NumaMask) -> tuple[int, int, int, NumaMask]:
        listed = tuple(members(cpus))
        return (
            -(cpus & memory).bit_count(),
            sum(self.distances[one][other] for one in listed for other in members(memory)),
            sum(self.rank[one] for one in listed),
            cpus,
        )


@dataclass(frozen=True, slots=True)
class _Question:
    """A search, which equals others by its values."""

    values: tuple[object, ...]
    pairing: Pairing = field(compare=False)


@lru_cache(maxsize=64)
def _remembered(question: _Question) -> NumaMask:
    return question.pairing.search()


def prices_beside(
    cpus: Mapping[int, int], numa_nodes: Iterable[int], distances: Distances
) -> Prices:
    """Prices of NUMA nodes for memory: those with most of the CPUs first, then the nearest.

    Args:
        cpus: how many CPUs are on each NUMA node.
        numa_nodes: those that get a price.
        distances: from NUMA node to NUMA node.
    """
    return {
        one: sum(count * distances[of_cpus][one] for of_cpus, count in cpus.items())
        - _APART * cpus.get(one, 0)
        for one in numa_nodes
    }


def _choices(wanted: Wanted) -> int:
    return comb(len(wanted.numa_nodes), wanted.size)


def _fullest(wanted: Wanted) -> Sequence[int]:
    """The NUMA nodes that hold most of the first need."""
    weights = wanted.needs[0][0] if wanted.needs else {}
    ordered = sorted(wanted.numa_nodes, key=lambda one: (-weights.get(one, 0), one))
    return ordered[:_MOST_AROUND]


def _holds(wanted: Wanted, numa_nodes: tuple[int, ...]) -> bool:
    return all(
        sum(weights.get(one, 0) for one in numa_nodes) >= need for weights, need in wanted.needs
    )
