"""The NUMA nodes on which a pod could be placed, and how many CPUs each choice lacks."""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, product
from math import prod
from typing import Final, NamedTuple

from numapin_operator.placement.masks import NumaMask
from numapin_operator.placement.moves.search_space import Counts, SearchSpace
from numapin_operator.placement.requests import (
    ContainerKind,
    PodView,
    exclusive_cpus,
    pod_cpus,
)

MOST_TARGETS: Final = 512
"""Choices of NUMA nodes that are tried for one pod."""

Positions = tuple[int, ...]
"""NUMA nodes by their place in `Counts`."""


class Target(NamedTuple):
    """NUMA nodes for the containers of a pod: each choice with how many CPUs it must have free."""

    needs: tuple[tuple[Positions, int], ...]

    def lacks(self, free: Counts) -> int:
        """How many more CPUs must get free at least."""
        if len(self.needs) == 1:
            ((chosen, wanted),) = self.needs
            return max(0, wanted - sum([free[place] for place in chosen]))
        short = [
            max(0, wanted - sum(free[place] for place in chosen)) for chosen, wanted in self.needs
        ]
        apart = sum(len(chosen) for chosen, _ in self.needs) == len(self.positions)
        return sum(short) if apart else max(short)

    @property
    def positions(self) -> frozenset[int]:
        """All its NUMA nodes."""
        return frozenset(place for chosen, _ in self.needs for place in chosen)

    def gains(self, before: Counts, after: Counts) -> bool:
        """Whether a container that changes its CPUs so frees some that the pod could use."""
        return any(
            sum(before[place] - after[place] for place in chosen) > 0 for chosen, _ in self.needs
        )


def needs_of(space: SearchSpace, pod: PodView) -> tuple[int, ...]:
    """The numbers of CPUs that must each be aligned for a pod.

    Empty if no moves are searched for it: nothing of it demands NUMA nodes, it has pod-level
    resources, or an init container that has not ended.
    """
    policy = space.policy.hint_merger.policy
    starting = any(one.kind is ContainerKind.INIT and not one.ended for one in pod.containers)
    if policy not in ("Restricted", "SingleNUMANode") or pod.pod_level is not None or starting:
        return ()
    if space.policy.spec.topology.scope == "Pod":
        return tuple(filter(None, (pod_cpus(pod),)))
    return tuple(
        count for one in pod.containers if not one.ended and (count := exclusive_cpus(pod, one)) > 0
    )


def targets(
    space: SearchSpace, needs: Sequence[int], within: NumaMask
) -> tuple[tuple[Target, ...], bool]:
    """The choices of NUMA nodes for all needs together, and whether none was left out.

    Args:
        space: the node.
        needs: the numbers of CPUs that must each be aligned.
        within: the NUMA nodes on which they may be.
    """
    near = frozenset(place for place, one in enumerate(space.ids) if within >> one & 1)
    choices = [
        tuple(chosen for chosen in _choices(space, wanted) if near.issuperset(chosen))
        for wanted in needs
    ]
    made = tuple(
        Target(_joined(zip(chosen, needs, strict=True)))
        for chosen in islice(product(*choices), MOST_TARGETS)
    )
    return made, prod(map(len, choices)) <= MOST_TARGETS


def _choices(space: SearchSpace, wanted: int) -> Iterator[Positions]:
    """The smallest sets of NUMA nodes that the policy accepts and that are large enough."""
    sizes = space.counts(space.policy.cpu_groups.cpus & ~space.policy.reserved)
    hints = space.hints(wanted)
    if hints is None:
        return
    everywhere = range(len(sizes))
    kinds: list[Iterator[Positions]] = [
        islice(combinations(everywhere, hints.fewest), MOST_TARGETS + 1)
    ]
    if hints.sockets is not None:
        kinds.append(_sockets(space, hints.sockets))
    for kind in kinds:
        for chosen in kind:
            enough = sum(sizes[place] for place in chosen) >= wanted
            if enough and (len(chosen) == 1 or space.policy.hint_merger.policy == "Restricted"):
                yield chosen


def _sockets(space: SearchSpace, count: int) -> Iterator[Positions]:
    """The NUMA nodes of so many sockets."""
    groups = space.policy.cpu_groups
    for chosen in islice(combinations(groups.sockets, count), MOST_TARGETS + 1):
        yield tuple(
            place
            for place, one in enumerate(space.ids)
            if groups.sockets_of_numa_node[one] & set(chosen)
        )


def _joined(chosen: Iterator[tuple[Positions, int]]) -> tuple[tuple[Positions, int], ...]:
    """What is needed of each choice; containers with the same choice need the sum."""
    needed: dict[Positions, int] = {}
    for positions, wanted in chosen:
        needed[positions] = needed.get(positions, 0) + wanted
    return tuple(sorted(needed.items()))
