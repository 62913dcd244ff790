"""The distributed take, against the kubelet's own way: every combination of NUMA nodes in turn.

The oracle keeps its lists as Go keeps slices, since the kubelet goes on appending to the list that
it has chosen, and its answers show it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, sqrt

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement.cpumanager.cpu_groups import CpuGroups, cpu_groups_of
from numapin_operator.placement.cpumanager.distributed import take_distributed
from numapin_operator.placement.cpumanager.packed import Packing, sorted_numa_nodes, take_packed
from numapin_operator.placement.errors import NotEnoughCpusError
from numapin_operator.placement.kubelet_quirks import KUBELET as KUBELET_QUIRKS
from numapin_operator.placement.masks import NO_CPUS, CpuMask

KUBELET = Packing(quirks=KUBELET_QUIRKS)


class HangError(Exception):
    """The kubelet would never answer."""


@dataclass
class Slice:
    """A Go slice: a length and a backing array that other slices may share."""

    array: list[int] = field(default_factory=list)
    length: int = 0
    capacity: int = 0

    def append(self, value: int) -> "Slice":
        if self.length < self.capacity:
            self.array[self.length] = value
            return Slice(self.array, self.length + 1, self.capacity)
        grown = max(1, self.capacity * 2)
        array = self.array[: self.length] + [value] + [0] * (grown - self.length - 1)
        return Slice(array, self.length + 1, grown)

    def values(self) -> list[int]:
        return self.array[: self.length]


def each_combination(items: list[int], size: int, call: Callable[[Slice], bool]) -> None:
    def descend(left: int, start: int, chosen: Slice) -> bool:
        if left == 0:
            return call(chosen)
        return any(
            descend(left - 1, i + 1, chosen.append(items[i]))
            for i in range(start, len(items) - left + 1)
        )

    if size >= 1:
        descend(size, 0, Slice())


def deviation(values: list[int]) -> float:
    mean = round(sum(values) / len(values), 3)
    return round(sqrt(sum((value - mean) ** 2 for value in values) / len(values)), 3)


@dataclass
class Search:
    """The kubelet's search among `size` NUMA nodes; `free` maps each to its free CPUs."""

    free: dict[int, int]
    count: int
    group: int
    balance: float = inf
    chosen: Slice | None = None
    remainder: Slice | None = None

    def visit(self, nodes: Slice) -> bool:
        if self.balance == 0:
            return True
        values = nodes.values()
        share = self.count // len(values) // self.group * self.group
        groups = sum(self.free[node] // self.group for node in values)
        if groups * self.group < self.count or any(self.free[n] < share for n in values):
            return False
        left = dict(self.free)
        for node in values:
            left[node] -= share
        balance, remainder = self.best_remainder(values, left, self.count - share * len(values))
        if balance < self.balance:
            self.balance, self.chosen, self.remainder = balance, nodes, remainder
        return False

    def best_remainder(
        self, nodes: list[int], left: dict[int, int], rest: int
    ) -> tuple[float, Slice | None]:
        if rest == 0:
            return deviation(list(left.values())), None
        able = [node for node in nodes if left[node] >= self.group]
        best: tuple[float, Slice | None] = (inf, None)

        def visit(subset: Slice) -> bool:
            nonlocal best
            values = subset.values()
            if sum(left[node] for node in values) < rest:
                return False
            if sum(left[node] // self.group for node in values) * self.group < rest:
                raise HangError
            balance = deviation(list(self.hand_out(values, dict(left), rest).values()))
            if balance < best[0]:
                best = balance, subset
            return False

        for size in range(len(able), 0, -1):
            each_combination(able, size, visit)
        return best

    def hand_out(self, nodes: list[int], left: dict[int, int], rest: int) -> dict[int, int]:
        while rest:
            for node in nodes:
                if rest and left[node] >= self.group:
                    left[node] -= self.group
                    rest -= self.group
        return left


def take_like_the_kubelet(cpu_groups: CpuGroups, free: CpuMask, count: int, group: int) -> CpuMask:
    if count % group:
        return take_packed(cpu_groups, free, count, KUBELET)
    nodes = [node for _, node, _ in sorted_numa_nodes(cpu_groups, free)]
    there = {node: (cpu_groups.numa_nodes[node] & free).bit_count() for node in nodes}
    groups_in_all = -(-cpu_groups.cpus.bit_count() // group)
    per_node = -(-groups_in_all // len(cpu_groups.numa_nodes))
    for size in range(-(-(count // group) // per_node), min(count // group, len(nodes)) + 1):
        search = Search(there, count, group)
        each_combination(nodes, size, search.visit)
        if search.chosen is not None:
            return carry_out(cpu_groups, free, search)
    return take_packed(cpu_groups, free, count, KUBELET)


def carry_out(cpu_groups: CpuGroups, free: CpuMask, search: Search) -> CpuMask:
    assert search.chosen is not None
    chosen = search.chosen.values()
    share = search.count // len(chosen) // search.group * search.group
    taken = NO_CPUS

    def take(node: int, count: int) -> bool:
        nonlocal taken
        there = cpu_groups.numa_nodes[node] & free & ~taken
        if there.bit_count() < count:
            return False
        taken |= take_packed(cpu_groups, there, count, KUBELET)
        return True

    for node in chosen:
        take(node, share)
    rest = search.count - share * len(chosen)
    while rest:
        before = rest
        for node in search.remainder.values() if search.remainder else ():
            if rest and take(node, search.group):
                rest -= search.group
        if rest == before:
            raise HangError
    if taken.bit_count() != search.count:
        raise NotEnoughCpusError(search.count, taken.bit_count())
    return taken


@st.composite
def cases(draw: st.DrawFn) -> tuple[CpuGroups, CpuMask, int, int]:
    """Up to nine NUMA nodes on one to nine sockets, partly taken; a count and a group size."""
    nodes = draw(st.integers(1, 9))
    per_socket = draw(st.integers(1, 4))
    threads = draw(st.integers(1, 2))
    uneven = draw(st.booleans())
    cpus: list[Cpu] = []
    for node in range(nodes):
        for _ in range(draw(st.integers(1, 4)) if uneven else 3):
            first = len(cpus)
            cpus += [Cpu(first + t, first, node // per_socket, -1, node) for t in range(threads)]
    topology = Topology(tuple(cpus), tuple(NumaNode(node, 1) for node in range(nodes)))
    cpu_groups = cpu_groups_of(topology)
    masks = st.integers(0, cpu_groups.cpus).map(CpuMask)
    free = cpu_groups.cpus & ~draw(masks)
    if draw(st.booleans()):
        free = cpu_groups.cpus & ~(draw(masks) & free)
    assume(free)
    return (
        cpu_groups,
        free,
        draw(st.integers(1, free.bit_count())),
        draw(st.sampled_from([1, threads])),
    )


@given(cases())
@settings(max_examples=400, deadline=None)
def test_the_choice_is_the_one_that_trying_everything_makes(
    case: tuple[CpuGroups, CpuMask, int, int],
) -> None:
    cpu_groups, free, count, group = case
    want: CpuMask | None
    try:
        want = take_like_the_kubelet(cpu_groups, free, count, group)
    except NotEnoughCpusError:
        want = None
    except HangError:
        assume(False)
    if want is None:
        with pytest.raises(NotEnoughCpusError, match="on the NUMA nodes chosen"):
            take_distributed(cpu_groups, free, count, group, KUBELET)
    else:
        assert take_distributed(cpu_groups, free, count, group, KUBELET) == want
    ours = take_distributed(cpu_groups, free, count, group, Packing())
    assert ours.bit_count() == count
    assert not ours & ~free


@pytest.mark.parametrize("nodes", [16, 34, 64])
def test_it_answers_on_machines_where_the_kubelet_tries_too_much(nodes: int) -> None:
    cpus = tuple(Cpu(i, i, i // 8, -1, i // 8) for i in range(nodes * 8))
    cpu_groups = cpu_groups_of(Topology(cpus, tuple(NumaNode(node, 1) for node in range(nodes))))
    taken = CpuMask(sum(1 << i for i in range(0, nodes * 8, 3)))
    free = cpu_groups.cpus & ~taken
    half = free.bit_count() // 2
    given_out = take_distributed(cpu_groups, free, half, 1, Packing())
    assert given_out.bit_count() == half
    assert not given_out & taken
    shares = [(mask & given_out).bit_count() for mask in cpu_groups.numa_nodes.values()]
    used = [share for share in shares if share]
    assert max(used) - min(used) <= 1
