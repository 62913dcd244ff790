"""The cheapest set of so many NUMA nodes that holds what is wanted, where each node has a price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from numapin_operator.placement.masks import NO_NUMA_NODES, NumaMask, numa_mask
from numapin_operator.placement.topologymanager.subset_search import Weights, most_of_first

Prices = Mapping[int, int]
"""NUMA node to its price, which may be negative."""

_EXACT_NODES: Final = 12
_MOST_STEPS: Final = 400
"""Among more NUMA nodes than `_EXACT_NODES`, the search ends here with the cheapest set so far."""


class Wanted(NamedTuple):
    """A set of exactly `size` of these NUMA nodes that together hold every need."""

    numa_nodes: tuple[int, ...]
    needs: tuple[tuple[Weights, int], ...]
    size: int


def cheapest_set(wanted: Wanted, prices: Prices) -> NumaMask:
    """The set with the lowest sum of prices, then the lowest bit mask; 0 if none was found."""
    if not 0 < wanted.size <= len(wanted.numa_nodes):
        return NO_NUMA_NODES
    return _BranchAndBound(wanted, prices).run()


@dataclass(slots=True)
class _BranchAndBound:
    """Takes the cheapest nodes first.

    A branch is cut if the nodes that are left cannot hold what is missing, or not cheaper than the
    best set found.
    """

    wanted: Wanted
    prices: Prices
    order: Sequence[int] = ()
    sums: Sequence[int] = ()
    tops: Sequence[Sequence[Sequence[int]]] = ()
    chosen: list[int] = field(default_factory=list)
    found: NumaMask = NO_NUMA_NODES
    price: int = 0
    steps: int = 0

    def run(self) -> NumaMask:
        numa_nodes, needs, size = self.wanted
        bits = max(numa_nodes) + 1
        full = {one: (self.prices.get(one, 0) << bits) + (1 << one) for one in numa_nodes}
        self.prices = full
        self.order = sorted(numa_nodes, key=full.__getitem__)
        cheapest = self.order[:size]
        if all(sum(held.get(one, 0) for one in cheapest) >= need for held, need in needs):
            return numa_mask(cheapest)
        self.sums = [0, *accumulate(full[one] for one in self.order)]
        last_first = self.order[::-1]
        self.tops = [most_of_first(last_first, weights, size) for weights, _ in needs]
        self._descend(0, [need for _, need in needs], 0)
        return self.found

    def _descend(self, at: int, missing: list[int], price: int) -> None:
        self.steps += 1
        left = self.wanted.size - len(self.chosen)
        rest = len(self.order) - at
        if left > rest or (self.steps > _MOST_STEPS and len(self.order) > _EXACT_NODES):
            return
        if self.found and price + self.sums[at + left] - self.sums[at] >= self.price:
            return
        if any(have > top[rest][left] for have, top in zip(missing, self.tops, strict=True)):
            return
        if not left:
            self.found, self.price = numa_mask(self.chosen), price
            return
        numa_node = self.order[at]
        self.chosen.append(numa_node)
        needs = self.wanted.needs
        fewer = [
            have - held.get(numa_node, 0) for have, (held, _) in zip(missing, needs, strict=True)
        ]
        self._descend(at + 1, fewer, price + self.prices[numa_node])
        self.chosen.pop()
        self._descend(at + 1, missing, price)
