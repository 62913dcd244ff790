"""Shares: which NUMA nodes give what even shares leave over, and how the kubelet muddles them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

_MOST_TRIED: Final = 512
_CAPACITIES: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Capacities that a Go slice of ints grows through when elements are appended one by one."""

Rests = Sequence[tuple[int, int]]
"""Position of a NUMA node and the CPUs it has free after its even share."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """The remainder handed out: `chosen` positions of NUMA nodes take turns giving a group each.

    `given` tells how many CPUs each gives in the end; `spread` by how much the sum of squares of
    free CPUs changes; `candidates` are the positions that could have been chosen.
    `depends_on_order` says that another order of the NUMA nodes may give another spread.
    """

    chosen: tuple[int, ...] = ()
    given: tuple[tuple[int, int], ...] = ()
    spread: int = 0
    candidates: tuple[int, ...] = ()
    depends_on_order: bool = False

    def places(self, *, stopped: bool) -> tuple[int, ...]:
        """The chosen positions as the kubelet has them in the end, see `as_left_by_appends`."""
        index = {at: number for number, at in enumerate(self.candidates)}
        numbers = tuple(index[at] for at in self.chosen)
        left = as_left_by_appends(numbers, len(self.candidates), stopped=stopped)
        return tuple(self.candidates[number] for number in left)


def best_leftover(rests: Rests, turns: int, group: int) -> Leftover:
    """Choose who gives `turns` groups so that the free CPUs left are most even.

    Of equal choices the kubelet keeps the first it meets: more NUMA nodes before fewer, then the
    lowest positions. There is always one: `rests` hold `turns` groups in all.
    """
    if not turns:
        return Leftover()
    able = [(at, rest) for at, rest in rests if rest >= group]
    best = _one_turn_each(able, turns, group) if len(able) >= turns else None
    if best is not None and best.spread <= _least_spread(able, turns, group):
        return best
    for numa_nodes in range(min(turns - 1, len(able)), 0, -1):
        found = _in_rounds(able, numa_nodes, turns, group)
        if found is not None and (best is None or found.spread < best.spread):
            best = found
    if best is None:
        raise ValueError("the NUMA nodes chosen cannot give the remainder")
    return best


def _one_turn_each(able: Rests, turns: int, group: int) -> Leftover:
    """The nodes with most left give one group each; those behind them stand by, giving none."""
    fullest = sorted(range(len(able)), key=lambda i: (-able[i][1], i))[:turns]
    last = max(fullest)
    chosen = [*sorted(fullest), *range(last + 1, len(able))]
    return Leftover(
        chosen=tuple(able[i][0] for i in chosen),
        given=tuple((able[i][0], group) for i in sorted(fullest)),
        spread=sum(group * group - 2 * group * able[i][1] for i in fullest),
        candidates=tuple(at for at, _ in able),
    )


def _least_spread(able: Rests, turns: int, group: int) -> int:
    """A bound: each turn by whoever then has most left."""
    rests = [rest for _, rest in able]
    spread = 0
    for _ in range(turns):
        fullest = max(range(len(rests)), key=rests.__getitem__)
        spread += group * group - 2 * group * rests[fullest]
        rests[fullest] -= group
    return spread


def _in_rounds(able: Rests, numa_nodes: int, turns: int, group: int) -> Leftover | None:
    """The best subset of so many nodes, each giving in several rounds; None if none has enough."""
    subsets = combinations(range(len(able)), numa_nodes)
    if comb(len(able), numa_nodes) > _MOST_TRIED:
        fullest = sorted(range(len(able)), key=lambda i: (-able[i][1], i))[:numa_nodes]
        subsets = combinations(sorted(fullest), numa_nodes)
    best: Leftover | None = None
    for subset in subsets:
        rests = [able[i][1] for i in subset]
        if sum(rest // group for rest in rests) < turns:
            continue
        given = _take_turns(rests, turns, group)
        spread = sum(g * g - 2 * g * rest for g, rest in zip(given, rests, strict=True))
        if best is None or spread < best.spread:
            places = tuple(able[i][0] for i in subset)
            best = Leftover(
                chosen=places,
                given=tuple(zip(places, given, strict=True)),
                spread=spread,
                candidates=tuple(at for at, _ in able),
                depends_on_order=True,
            )
    return best


def _take_turns(rests: Sequence[int], turns: int, group: int) -> list[int]:
    given = [0] * len(rests)
    while turns:
        for i, rest in enumerate(rests):
            if turns and rest - given[i] >= group:
                given[i] += group
                turns -= 1
    return given


def as_left_by_appends(chosen: tuple[int, ...], total: int, *, stopped: bool) -> tuple[int, ...]:
    """What the kubelet's record of a chosen combination holds once its search is over.

    The kubelet keeps a slice that the search goes on appending to. Where the slice has spare
    capacity, combinations with the same beginning share its memory, so that the end of the chosen
    one is overwritten by the last of them (by the very next, if the search stopped there because
    nothing can be more even). Its answers depend on it, so ours do.

    Args:
        chosen: ascending positions of a combination out of `total`.
        total: how many there are to choose from.
        stopped: whether the search ended with the next combination.
    """
    size = len(chosen)
    kept = max((capacity for capacity in _CAPACITIES if capacity < size), default=0) + 1
    if kept >= size:
        return chosen
    if not stopped:
        return chosen[:kept] + tuple(range(total - (size - kept), total))
    following = _next_combination(chosen, total)
    return following if following[:kept] == chosen[:kept] else chosen


def _next_combination(chosen: tuple[int, ...], total: int) -> tuple[int, ...]:
    """The combination after this one in ascending order; itself where it is the last."""
    size = len(chosen)
    for i in reversed(range(size)):
        if chosen[i] < total - size + i:
            return chosen[:i] + tuple(range(chosen[i] + 1, chosen[i] + 1 + size - i))
    return chosen
