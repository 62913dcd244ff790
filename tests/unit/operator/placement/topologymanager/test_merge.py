"""The merge, against the kubelet's own way: every combination of every hint, compared in turn."""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement.allocations import Block
from numapin_operator.placement.cpumanager.cpu_groups import cpu_groups_of
from numapin_operator.placement.masks import NO_CPUS, CpuMask, NumaMask, members, numa_mask
from numapin_operator.placement.memorymanager.tables import MemoryTables
from numapin_operator.placement.topologymanager.device_hints import DeviceRequest, device_hints
from numapin_operator.placement.topologymanager.hints import (
    CpuHints,
    Impossible,
    MemoryHints,
    cpu_hints,
)
from numapin_operator.placement.topologymanager.merge import HintMerger, MergedHint


@dataclass(frozen=True)
class Hint:
    """A hint as the kubelet lists it; no NUMA nodes at all means any."""

    numa_nodes: NumaMask | None
    preferred: bool


def subsets(nodes: tuple[int, ...]) -> list[NumaMask]:
    return [numa_mask(c) for size in range(1, len(nodes) + 1) for c in combinations(nodes, size)]


def listed_cpu_hints(hints: CpuHints | Impossible | None) -> list[list[Hint]]:
    if hints is None:
        return [[Hint(None, preferred=True)]]
    if isinstance(hints, Impossible):
        return [[Hint(None, preferred=False)]]
    return [
        [
            Hint(mask, hints.prefers(mask))
            for mask in subsets(hints.numa_nodes)
            if not hints.required & ~mask
            and sum(hints.free[node] for node in members(mask)) >= hints.wanted
        ]
    ]


def listed_memory_hints(hints: MemoryHints | None) -> list[list[Hint]]:
    if hints is None:
        return [[Hint(None, preferred=True)]]
    masks = [NumaMask(1 << node) for node in members(hints.singles)] + list(hints.groups)
    for mask in subsets(hints.loose):
        enough = all(
            sum(weights.get(node, 0) for node in members(mask)) >= need
            for weights, need in hints.needs
        )
        if mask.bit_count() > 1 and enough:
            masks.append(mask)
    one = [Hint(mask, mask.bit_count() == hints.fewest) for mask in masks]
    return [one for _ in hints.asked]


@dataclass(frozen=True)
class Asked:
    """A request for devices, each of which is the set of NUMA nodes that it is near."""

    wanted: int
    there: list[NumaMask]
    free: list[NumaMask]
    reusable: list[NumaMask]


def listed_device_hints(asked: Asked, everywhere: NumaMask) -> list[list[Hint]]:
    """Source: Kubernetes v1.36, devicemanager, `generateDeviceTopologyHints`."""
    if not any(asked.there):
        return [[Hint(None, preferred=True)]]
    if len(asked.free) + len(asked.reusable) < asked.wanted:
        return [[Hint(None, preferred=False)]]
    with_devices = numa_mask(one for near in asked.there for one in members(near & everywhere))
    nodes = tuple(members(with_devices or everywhere))
    fewest, found = len(nodes), []
    for mask in subsets(nodes):
        if sum(1 for near in asked.there if near & mask) >= asked.wanted:
            fewest = min(fewest, mask.bit_count())
        left_over = [near for near in asked.reusable if near]
        matching = len(left_over) + sum(1 for near in asked.free if near & mask)
        if all(near & mask for near in left_over) and matching >= asked.wanted:
            found.append(mask)
    return [[Hint(mask, mask.bit_count() == fewest) for mask in found] or [Hint(None, False)]]


def merge_all(
    lists: list[list[Hint]], everywhere: NumaMask, distances: dict[int, dict[int, int]] | None
) -> Hint:
    """The kubelet's merge, by its own rules of comparison."""
    counts = [
        min(hint.numa_nodes.bit_count() for hint in each if hint.numa_nodes is not None)
        for each in lists
        if any(hint.numa_nodes is not None for hint in each)
    ]
    aim = max(counts, default=0)

    def rank(mask: NumaMask) -> tuple[float, float, int]:
        nodes = list(members(mask))
        if distances is None:
            return mask.bit_count(), 0, mask
        total = sum(distances[one][other] for one in nodes for other in nodes)
        return mask.bit_count(), total / len(nodes) ** 2, mask

    best: Hint | None = None
    for combination in product(*lists):
        given_masks = [hint.numa_nodes for hint in combination if hint.numa_nodes is not None]
        joint = everywhere
        for mask in given_masks:
            joint &= mask
        preferred = all(hint.preferred for hint in combination) and len(set(given_masks)) <= 1
        candidate = Hint(joint, preferred)
        if joint and (best is None or better(candidate, best, aim, rank)):
            best = candidate
    return best or Hint(everywhere, preferred=False)


def better(candidate: Hint, best: Hint, aim: int, rank) -> bool:  # type: ignore[no-untyped-def]
    assert candidate.numa_nodes is not None
    assert best.numa_nodes is not None
    if candidate.preferred != best.preferred:
        return candidate.preferred
    fitter = rank(candidate.numa_nodes) < rank(best.numa_nodes)
    if best.preferred:
        return bool(fitter)
    size, now = candidate.numa_nodes.bit_count(), best.numa_nodes.bit_count()
    if now > aim:
        return bool(fitter)
    if now == aim or size > aim:
        return bool(size == aim and now == aim and fitter)
    return size > now or (size == now and bool(fitter))


@dataclass(frozen=True)
class Case:
    cpu: CpuHints | Impossible | None
    memory: MemoryHints | None
    devices: tuple[Asked, ...]
    everywhere: NumaMask
    distances: dict[int, dict[int, int]] | None

    def lists(self) -> list[list[Hint]]:
        """Every hint that the kubelet lists."""
        found = listed_cpu_hints(self.cpu) + listed_memory_hints(self.memory)
        for one in self.devices:
            found += listed_device_hints(one, self.everywhere)
        return found

    def merged(self, policy: str) -> MergedHint | None:
        """What the planner finds."""
        devices = [
            device_hints(
                DeviceRequest("nic", one.wanted, tuple(one.reusable)),
                Counter(one.there),
                Counter(one.free),
                self.everywhere,
            )
            for one in self.devices
        ]
        merger = HintMerger(policy, self.everywhere, self.distances)
        offered = tuple(one for one in devices if one is not None)
        return merger.merge(self.cpu, self.memory, devices=offered)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    with_cpus = draw(st.integers(1, 4))
    nodes = with_cpus + draw(st.integers(0, 1))
    cores = draw(st.lists(st.integers(1, 4), min_size=with_cpus, max_size=with_cpus))
    rows = [node for node, count in enumerate(cores) for _ in range(count)]
    cpus = tuple(Cpu(i, i, node // 2, -1, node) for i, node in enumerate(rows))
    cpu_groups = cpu_groups_of(Topology(cpus, tuple(NumaNode(i, 1) for i in range(nodes))))
    masks = st.integers(0, (1 << len(rows)) - 1).map(CpuMask)
    taken = draw(masks)
    reusable = taken & draw(masks) if draw(st.booleans()) else NO_CPUS
    wanted = draw(st.integers(0, len(rows)))
    cpu = None
    if wanted:
        free = cpu_groups.cpus & ~taken
        cpu = cpu_hints(cpu_groups, free, reusable, wanted, by_socket=draw(st.booleans()))
    symmetric = {(a, b): draw(st.integers(11, 31)) for a in range(nodes) for b in range(a)}
    distances = {
        a: {b: 10 if a == b else symmetric[max(a, b), min(a, b)] for b in range(nodes)}
        for a in range(nodes)
    }
    return Case(
        cpu=cpu,
        memory=draw(memory_cases(nodes)),
        devices=tuple(draw(st.lists(device_cases(nodes), max_size=2))),
        everywhere=NumaMask((1 << nodes) - 1),
        distances=distances if draw(st.booleans()) else None,
    )


@st.composite
def memory_cases(draw: st.DrawFn, nodes: int) -> MemoryHints | None:
    if draw(st.booleans()):
        return None
    resources = ("hugepages-2Mi", "memory")[draw(st.integers(0, 1)) :]
    sizes = st.lists(st.integers(0, 9), min_size=nodes, max_size=nodes)
    capacity = {name: dict(enumerate(draw(sizes))) for name in resources}
    tables = MemoryTables(capacity, range(nodes))
    for _ in range(draw(st.integers(0, 2))):
        mask = NumaMask(draw(st.integers(1, (1 << nodes) - 1)))
        if not tables.clashes(mask):
            tables.assign(Block(mask, draw(st.sampled_from(resources)), draw(st.integers(0, 6))))
    asked = tuple((name, draw(st.integers(0, 12))) for name in resources)
    hints = tables.hints(asked, {})
    return hints if hints.best() else None


@st.composite
def device_cases(draw: st.DrawFn, nodes: int) -> Asked:
    """A resource; NUMA node `nodes` is one that the machine does not have."""
    near = st.one_of(
        st.integers(0, nodes - 1).map(lambda one: NumaMask(1 << one)),
        st.integers(0, (2 << nodes) - 1).map(NumaMask),
    )
    there = draw(st.lists(near, max_size=6))
    states = [draw(st.sampled_from(("free", "free", "used", "reusable"))) for _ in there]
    of = {
        state: [one for one, has in zip(there, states, strict=True) if has == state]
        for state in ("free", "reusable")
    }
    return Asked(draw(st.integers(0, 5)), there, of["free"], of["reusable"])


@given(cases())
@settings(max_examples=600, deadline=None)
def test_the_search_finds_what_trying_everything_finds(case: Case) -> None:
    want = merge_all(case.lists(), case.everywhere, case.distances)
    got = case.merged("BestEffort")
    assert got is not None
    assert (got.numa_nodes, got.preferred) == (want.numa_nodes, want.preferred)
    assert case.merged("Restricted") == (got if want.preferred else None)


@given(cases())
@settings(max_examples=300, deadline=None)
def test_single_numa_node_is_the_same_among_single_nodes(case: Case) -> None:
    lists = [
        [
            hint
            for hint in each
            if hint.preferred and (hint.numa_nodes is None or hint.numa_nodes.bit_count() == 1)
        ]
        for each in case.lists()
    ]
    want = merge_all(lists, case.everywhere, None)
    got = case.merged("SingleNUMANode")
    assert (got is not None) == want.preferred
    if got is not None:
        nodes = want.numa_nodes if want.numa_nodes != case.everywhere else None
        assert got.numa_nodes == nodes


@pytest.mark.parametrize("nodes", [34, 64, 200])
def test_the_search_stays_small_on_many_numa_nodes(nodes: int) -> None:
    """The kubelet would list 2 to the power of these; its masks end at 64."""
    cpus = tuple(Cpu(i, i, i // 4, -1, i // 4) for i in range(nodes * 4))
    topology = Topology(cpus, tuple(NumaNode(node, 1 << 30) for node in range(nodes)))
    cpu_groups = cpu_groups_of(topology)
    tables = MemoryTables({"memory": dict.fromkeys(range(nodes), 1 << 30)}, range(nodes))
    asked = (("memory", nodes // 2 << 30),)
    cpu = cpu_hints(
        cpu_groups, cpu_groups.cpus & ~CpuMask(1), NO_CPUS, nodes * 2 - 1, by_socket=False
    )
    near = {a: {b: 10 + abs(a - b) % 7 for b in range(nodes)} for a in range(nodes)}
    for distances in (None, near):
        hint_merger = HintMerger("BestEffort", NumaMask((1 << nodes) - 1), distances)
        found = hint_merger.merge(cpu, tables.hints(asked, {}))
        assert found is not None
        assert found.numa_nodes is not None
        assert found.preferred
        assert found.numa_nodes.bit_count() == nodes // 2
