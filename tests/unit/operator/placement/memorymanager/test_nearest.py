"""Memory under numapin's own policies, against every set of NUMA nodes tried by the stated rule."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.placement import Node, PlacementError, resolve
from numapin_operator.placement.masks import CpuMask
from support.values.placement import GIB, pod, policy

MEMORY = "memory"
CPUS = 4
"""CPUs of each NUMA node; CPU 0 is reserved."""

Rows = Sequence[Sequence[int]]

TWO_SOCKETS = ((10, 12, 21, 21), (12, 10, 21, 21), (21, 21, 10, 12), (21, 21, 12, 10))


def machine_of(rows: Rows, gib: int = 16, per_node: int = CPUS, sockets: int = 1) -> Topology:
    """A NUMA node for each row of distances, with `gib` GiB; they are dealt to the sockets."""
    count = len(rows)
    cpus = tuple(
        Cpu(cpu, cpu, cpu // per_node * sockets // count, -1, cpu // per_node)
        for cpu in range(per_node * count)
    )
    nodes = (NumaNode(one, gib * GIB, distances=tuple(row)) for one, row in enumerate(rows))
    return Topology(cpus=cpus, numa_nodes=tuple(nodes))


def part_of(node: Node, cpus: Mapping[int, int], gib: Mapping[int, int]) -> None:
    """Leave so many CPUs and GiB free on NUMA nodes."""
    assert node.memory is not None
    for numa_node, mask in node.policy.cpu_groups.numa_nodes.items():
        free = CpuMask(mask & node.cpus.free)
        for cpu in list(CpuSet.from_mask(free))[cpus.get(numa_node, CPUS) :]:
            node.cpus.claim(CpuMask(1 << cpu))
        has = node.memory.free[MEMORY][numa_node]
        node.memory.withhold(MEMORY, numa_node, has - gib.get(numa_node, 0) * GIB)


def numa_nodes_of(node: Node, cpus: Iterable[int]) -> list[int]:
    """The NUMA node of each CPU."""
    by_cpu = {cpu.id: cpu.numa_node for cpu in node.policy.topology.cpus}
    return [by_cpu[cpu] for cpu in cpus]


def nearest_memory(
    rows: Rows, gib: Mapping[int, int], wanted: int, cpus_on: Sequence[int]
) -> tuple[int, ...]:
    """The rule: the fewest NUMA nodes, most of the CPUs, the nearest to them, the lowest."""
    for size in range(1, len(rows) + 1):
        enough = [
            each
            for each in combinations(range(len(rows)), size)
            if sum(gib.get(one, 0) for one in each) >= wanted
        ]
        if enough:
            return min(
                enough,
                key=lambda each: (
                    -sum(one in each for one in cpus_on),
                    sum(rows[one][other] for one in cpus_on for other in each),
                    sum(1 << one for one in each),
                ),
            )
    return ()


class Case(NamedTuple):
    """What is free on the NUMA nodes of a machine, and what a container wants of it."""

    rows: Rows
    cpus: dict[int, int]
    gib: dict[int, int]
    wanted_cpus: int
    wanted_gib: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(3, 6))
    far = {
        pair: draw(st.sampled_from([11, 12, 16, 21, 32])) for pair in combinations(range(count), 2)
    }
    rows = [
        [10 if one == other else far[min(one, other), max(one, other)] for other in range(count)]
        for one in range(count)
    ]
    cpus = {one: draw(st.integers(0, CPUS)) for one in range(count)}
    gib = {one: draw(st.integers(0, 16)) for one in range(count)}
    wanted = draw(st.integers(1, 12)), draw(st.integers(1, 40))
    return Case(rows, cpus, gib, *wanted)


def place(case: Case, **fields: Any) -> tuple[list[int], tuple[int, ...]] | None:
    """The NUMA nodes of each CPU and of the memory; None if the container is refused."""
    node = Node(resolve(machine_of(case.rows), policy(**fields)))
    part_of(node, case.cpus, case.gib)
    asks = pod("a", str(case.wanted_cpus), memory=f"{case.wanted_gib}Gi")
    try:
        (container,) = node.place(asks).containers
    except PlacementError:
        return None
    cpus = numa_nodes_of(node, CpuSet.from_mask(container.cpus))
    return cpus, tuple(CpuSet.from_mask(CpuMask(int(container.mems))))


@pytest.mark.parametrize("topology", ["None", "BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("memory", ["Preferred", "SingleNUMA"])
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_memory_is_nearest_to_the_cpus(topology: str, memory: str, case: Case) -> None:
    found = place(case, topology={"policy": topology}, memory={"policy": memory})
    if found is None:
        return
    cpus_on, mems = found
    assert mems == nearest_memory(case.rows, case.gib, case.wanted_gib, cpus_on)


Key = tuple[int, int, int, int]


def key_of(case: Case, free: Mapping[int, int], cpus: Sequence[int]) -> Key:
    """How good NUMA nodes are for the CPUs, by the rule of `Pairing`; the least is the best."""
    in_common, far = min(
        (-len({*cpus} & {*mems}), sum(case.rows[one][other] for one in cpus for other in mems))
        for mems in fewest(case.gib, case.wanted_gib)
    )
    return in_common, far, sum(free[one] for one in cpus), sum(1 << one for one in cpus)


def fewest(free: Mapping[int, int], wanted: int) -> list[tuple[int, ...]]:
    for size in range(1, len(free) + 1):
        sets = combinations(sorted(free), size)
        if found := [each for each in sets if sum(free[one] for one in each) >= wanted]:
            return found
    return []


@pytest.mark.parametrize("topology", ["None", "BestEffort"])
@given(case=cases())
@settings(max_examples=150, deadline=None)
def test_cpus_go_where_the_memory_can_be(topology: str, case: Case) -> None:
    """Of equally near NUMA nodes BestEffort takes the lowest, as the kubelet does."""
    found = place(case, topology={"policy": topology}, memory={"policy": "Preferred"})
    if found is None:
        return
    free = case.cpus | {0: min(case.cpus[0], CPUS - 1)}
    sets = fewest(free, case.wanted_cpus)
    best = min(key_of(case, free, each) for each in sets)
    (got,) = (each for each in sets if {*each} >= {*found[0]})
    compared = 4 if topology == "None" else 2
    assert key_of(case, free, got)[:compared] == best[:compared]


@pytest.mark.parametrize(
    ("fields", "case", "mems"),
    [
        pytest.param(
            {"topology": {"policy": "Restricted"}},
            Case(TWO_SOCKETS, {0: 0, 1: 1}, {0: 14, 1: 14, 2: 16, 3: 16}, 8, 24),
            (2, 3),
            id="memory-of-two-nodes",
        ),
        pytest.param(
            {},
            Case(TWO_SOCKETS, {0: 0, 1: 0, 2: 0}, {0: 14, 1: 14, 2: 14, 3: 4}, 2, 10),
            (2,),
            id="nearest-by-distance",
        ),
        pytest.param(
            {"topology": {"policy": "SingleNUMANode"}},
            Case(TWO_SOCKETS, {0: 0, 1: 0, 2: 0}, {0: 14, 1: 14, 2: 14, 3: 4}, 2, 16),
            (2, 3),
            id="cpus-on-one-node-memory-on-two",
        ),
        pytest.param(
            {"topology": {"policy": "Restricted"}},
            Case(TWO_SOCKETS, {}, {0: 0, 1: 3, 2: 9, 3: 8}, 2, 17),
            (2, 3),
            id="cpus-move-to-the-memory",
        ),
    ],
)
def test_what_users_met(fields: dict[str, Any], case: Case, mems: tuple[int, ...]) -> None:
    found = place(case, memory={"policy": "Preferred"}, **fields)
    assert found is not None
    cpus_on, bound = found
    assert bound == mems
    assert set(cpus_on) <= {2, 3}


def test_memory_without_cpus_of_its_own_is_on_near_nodes() -> None:
    rows = ((10, 32, 12), (32, 10, 32), (12, 32, 10))
    node = Node(resolve(machine_of(rows), policy(memory={"policy": "Preferred"})))
    (container,) = node.place(pod("a", "500m", memory="24Gi")).containers
    assert tuple(CpuSet.from_mask(CpuMask(int(container.mems)))) == (0, 2)


def test_a_machine_of_thirty_numa_nodes() -> None:
    """Pairs of NUMA nodes are near; the bounded search still finds the partner of each."""
    rows = [
        [10 if a == b else 12 if a // 2 == b // 2 else 20 + abs(a - b) for b in range(30)]
        for a in range(30)
    ]
    case = Case(rows, dict.fromkeys(range(30), 0) | {17: 4}, dict.fromkeys(range(30), 9), 4, 10)
    found = place(case, memory={"policy": "Preferred"})
    assert found == ([17, 17, 17, 17], (16, 17))
    wide = Case(rows, dict.fromkeys(range(30), 4), dict.fromkeys(range(30), 16), 24, 96)
    found = place(wide, memory={"policy": "Preferred"})
    assert found is not None
    assert set(found[0]) == set(found[1])
    assert max(found[1]) - min(found[1]) == 5


@pytest.mark.parametrize(
    ("gib", "parts"),
    [
        pytest.param({0: 16, 1: 16}, {0: 2, 1: 2}, id="half-on-each"),
        pytest.param({0: 1, 1: 16}, {0: 1, 1: 3}, id="what-the-other-lacks"),
        pytest.param({0: 1, 1: 2, 2: 4}, {2: 4}, id="not-on-the-nodes-of-the-cpus"),
    ],
)
def test_memory_follows_distributed_cpus(gib: dict[int, int], parts: dict[int, int]) -> None:
    rows = ((10, 20, 20), (20, 10, 20), (20, 20, 10))
    spread = {"options": {"distributeCPUsAcrossNUMA": True}, "memory": {"policy": "Preferred"}}
    node = Node(resolve(machine_of(rows, per_node=8), policy(**spread)))
    part_of(node, {0: 7, 1: 8, 2: 0}, gib)
    (container,) = node.place(pod("a", "10", memory="4Gi")).containers
    at = {next(iter(block.node_ids)): block.size_bytes // GIB for block in container.memory}
    assert at == parts


def test_huge_pages_are_not_divided() -> None:
    rows = ((10, 20), (20, 10))
    topology = machine_of(rows, per_node=8)
    pages = tuple(
        NumaNode(one.id, one.memory_bytes, {"1Gi": 4}, one.distances) for one in topology.numa_nodes
    )
    spread = {"options": {"distributeCPUsAcrossNUMA": True}, "memory": {"policy": "Preferred"}}
    node = Node(resolve(Topology(topology.cpus, pages), policy(**spread)))
    body = {"cpu": "10", "memory": "4Gi", "hugepages-1Gi": "3Gi"}
    asks = pod("a", containers=[{"name": "c", "resources": {"requests": body, "limits": body}}])
    (container,) = node.place(asks).containers
    found = sorted(b.size_bytes // GIB for b in container.memory if b.resource != MEMORY)
    assert found == [1, 2]
