"""The best set of so many NUMA nodes that holds what is wanted, found without trying all."""

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import neg
from typing import Final

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, numa_mask

Weights = Mapping[int, int]
"""NUMA node to what it holds of one resource; a missing node holds nothing."""

Distances = Mapping[int, Mapping[int, int]]

_EXACT_NODES: Final = 12
_MOST_STEPS: Final = 400
"""Among more NUMA nodes than `_EXACT_NODES`, the search ends here with the best set so far."""

_SCALE: Final = 1 << 40


def anything(_: NumaMask) -> bool:
    """Accepts every set."""
    return True


@dataclass(frozen=True, slots=True)
class SubsetSearch:
    """A search for sets of `numa_nodes` that together hold every need.

    `needs` are pairs of weights and the sum wanted. A set must contain `required` and be accepted
    by `accept`. If `distances` are given, the set with the nearest nodes wins; of equal sets the
    lowest bit mask does.
    """

    numa_nodes: tuple[int, ...]
    needs: tuple[tuple[Weights, int], ...] = ()
    required: NumaMask = NO_NUMA_NODES
    accept: Callable[[NumaMask], bool] = anything
    distances: Distances | None = None

    def best(self, size: int) -> NumaMask:
        """The best set of exactly `size` NUMA nodes; 0 if there is none."""
        if size < max(1, self.least_size()) or size > len(self.numa_nodes):
            return NO_NUMA_NODES
        if self.required & ~numa_mask(self.numa_nodes):
            return NO_NUMA_NODES
        if size == 1 and self.distances is None:
            return self._best_single()
        return _DepthFirst(self, size).run()

    def smallest(self, first: int = 1) -> NumaMask:
        """The best set of the fewest nodes, at least `first`; 0 if there is none."""
        for size in range(max(first, self.least_size()), len(self.numa_nodes) + 1):
            if found := self.best(size):
                return found
        return NO_NUMA_NODES

    def least_size(self) -> int:
        """Fewer nodes than this never suffice; more than there are if all do not."""
        least = self.required.bit_count()
        for weights, need in self.needs:
            if need <= 0:
                continue
            fullest = sorted(
                (weights.get(numa_node, 0) for numa_node in self.numa_nodes), reverse=True
            )
            totals = accumulate(fullest)
            size = next((n for n, total in enumerate(totals, 1) if total >= need), None)
            least = max(least, len(self.numa_nodes) + 1 if size is None else size)
        return least

    def _best_single(self) -> NumaMask:
        for numa_node in self.numa_nodes:
            mask = NumaMask(1 << numa_node)
            if (
                not self.required & ~mask
                and all(weights.get(numa_node, 0) >= need for weights, need in self.needs)
                and self.accept(mask)
            ):
                return mask
        return NO_NUMA_NODES


@dataclass(slots=True)
class _DepthFirst:
    """Depth first from the highest node down, deleting nodes out first: lowest sets come first.

    A branch is cut if even the fullest remaining nodes do not hold what is missing, or if its sets
    cannot be nearer than the best found.
    """

    cover: SubsetSearch
    size: int
    found: NumaMask = NO_NUMA_NODES
    found_distance: int = 0
    steps: int = 0
    needs: Sequence[tuple[Weights, int]] = ()
    tops: Sequence[Sequence[Sequence[int]]] = ()
    own: int = 0
    nearest: int = 0
    chosen: list[int] = field(default_factory=list)

    def run(self) -> NumaMask:
        self.needs = [*self.cover.needs, *_combined(self.cover)]
        self.tops = [
            most_of_first(self.cover.numa_nodes, weights, self.size) for weights, _ in self.needs
        ]
        if self.cover.distances is not None:
            self.own = min(
                self._distance(numa_node, numa_node) for numa_node in self.cover.numa_nodes
            )
            self.nearest = min(
                (
                    self._distance(a, b)
                    for a in self.cover.numa_nodes
                    for b in self.cover.numa_nodes
                    if a < b
                ),
                default=0,
            )
        self._descend(len(self.cover.numa_nodes), [need for _, need in self.needs], 0)
        return self.found

    def _descend(self, remaining: int, missing: list[int], distance: int) -> bool:
        """True if the search is over."""
        self.steps += 1
        left = self.size - len(self.chosen)
        if self.steps > _MOST_STEPS and len(self.cover.numa_nodes) > _EXACT_NODES:
            return True
        if (
            remaining < left
            or self._too_far(distance, left)
            or not self._enough(remaining, left, missing)
        ):
            return False
        if not left:
            return self._take(distance)
        numa_node = self.cover.numa_nodes[remaining - 1]
        if not self.cover.required >> numa_node & 1 and self._descend(
            remaining - 1, missing, distance
        ):
            return True
        further = distance + self._added(numa_node)
        self.chosen.append(numa_node)
        over = self._descend(
            remaining - 1,
            [have - w.get(numa_node, 0) for have, (w, _) in zip(missing, self.needs, strict=True)],
            further,
        )
        self.chosen.pop()
        return over

    def _enough(self, remaining: int, left: int, missing: list[int]) -> bool:
        return all(
            have <= top[remaining][left] for have, top in zip(missing, self.tops, strict=True)
        )

    def _too_far(self, distance: int, left: int) -> bool:
        if not self.found:
            return False
        crossing = left * len(self.chosen) + left * (left - 1) // 2
        least = distance + left * self.own + crossing * self.nearest
        return least >= self.found_distance

    def _take(self, distance: int) -> bool:
        mask = numa_mask(self.chosen)
        if self.cover.required & ~mask or not self.cover.accept(mask):
            return False
        self.found, self.found_distance = mask, distance
        return self.cover.distances is None

    def _added(self, numa_node: int) -> int:
        """What a node adds to the sum of distances within the set."""
        if self.cover.distances is None:
            return NO_NUMA_NODES
        return self._distance(numa_node, numa_node) + sum(
            self._distance(numa_node, o) for o in self.chosen
        )

    def _distance(self, one: int, other: int) -> int:
        distances = self.cover.distances
        if distances is None:
            return NO_NUMA_NODES
        if one == other:
            return distances[one][one]
        return distances[one][other] + distances[other][one]


def most_of_first(numa_nodes: Sequence[int], weights: Weights, size: int) -> list[list[int]]:
    """For each number of first nodes, the most that 0, 1, .. `size` of them hold together."""
    rows = [[0] * (size + 1)]
    fullest: list[int] = []
    for numa_node in numa_nodes:
        weight = weights.get(numa_node, 0)
        if len(fullest) == size and (not size or weight <= fullest[-1]):
            rows.append(rows[-1])
            continue
        insort(fullest, weight, key=neg)
        del fullest[size:]
        row = [0, *accumulate(fullest)]
        rows.append(row + row[-1:] * (size + 1 - len(row)))
    return rows


def _combined(cover: SubsetSearch) -> list[tuple[Weights, int]]:
    """All needs as one sum of shares, which cuts branches if needs compete for nodes."""
    if len(cover.needs) < 2:
        return []
    shares = {
        numa_node: sum(
            min(weights.get(numa_node, 0), need) * _SCALE // need + 1
            for weights, need in cover.needs
            if need > 0
        )
        for numa_node in cover.numa_nodes
    }
    return [(shares, _SCALE * sum(1 for _, need in cover.needs if need > 0))]
