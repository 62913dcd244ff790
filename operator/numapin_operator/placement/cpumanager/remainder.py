"""Which NUMA nodes give the CPUs that even shares leave over.

Source: Kubernetes v1.36, cpumanager, `takeByTopologyNUMADistributed`, the remainder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

_MOST_TRIED: Final = 512

Rests = Sequence[tuple[int, int]]
"""Position of a NUMA node and the CPUs it has free after its even share."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A remainder divided among NUMA nodes.

    Attributes:
        chosen: positions of NUMA nodes that take turns giving a group of CPUs each.
        given: how many CPUs each gives in the end.
        spread: the change of the sum of squares of free CPUs.
        candidates: the positions that could have been chosen.
        depends_on_order: another order of the NUMA nodes may give another spread.
    """

    chosen: tuple[int, ...] = ()
    given: tuple[tuple[int, int], ...] = ()
    spread: int = 0
    candidates: tuple[int, ...] = ()
    depends_on_order: bool = False


def best_leftover(rests: Rests, turns: int, group: int) -> Leftover:
    """Choose the NUMA nodes that give `turns` groups so that the CPUs left free are most even.

    Of equal choices the kubelet keeps the first: more NUMA nodes before fewer, then the lowest
    positions. There is always one, because `rests` hold `turns` groups in all.
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
    """The nodes with most CPUs left give one group each; the nodes after them give nothing."""
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
    """A lower bound: at each turn the node with most CPUs left gives."""
    rests = [rest for _, rest in able]
    spread = 0
    for _ in range(turns):
        fullest = max(range(len(rests)), key=rests.__getitem__)
        spread += group * group - 2 * group * rests[fullest]
        rests[fullest] -= group
    return spread


def _in_rounds(able: Rests, numa_nodes: int, turns: int, group: int) -> Leftover | None:
    """The best subset of so many nodes that give in several rounds; None if none has enough."""
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
