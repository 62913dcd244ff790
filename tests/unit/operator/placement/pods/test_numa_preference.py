"""Which of several NUMA nodes a pod gets that each have all it asks for."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    CPU,
    MEMORY,
    ContainerAllocation,
    Node,
    PlacementError,
    PodAllocation,
    PolicyError,
    numa_amounts,
    resolve,
)
from numapin_operator.placement.masks import CpuMask
from support.values.placement import GIB, machine, pod, policy, resources
from support.values.situations import Situation, situations

FOUR = machine(cpus=32, numa_nodes=4, memory_bytes=16 * GIB)
"""Eight CPUs on each NUMA node."""

SINGLE = {"topology": {"policy": "SingleNUMANode"}}
FILL = ("4", "6", "2", "4")
"""What is given out on NUMA nodes 0 to 3 before: 4 and the reserved CPU, 6, 2, 4."""


def prefers(numa_nodes: str, override: str = "Forbid") -> dict[str, Any]:
    return {"placement": {"numaNodes": numa_nodes, "podOverride": override}}


def filled(spec: CpuPolicySpec, topology: Topology = FOUR) -> Node:
    """A node of which so much is given out, whatever the policy prefers."""
    node = Node(resolve(topology, spec))
    for numa_node, cpus in enumerate(FILL):
        mask = node.policy.cpu_groups.numa_nodes[numa_node] & node.cpus.free
        taken = CpuSet(sorted(CpuSet.from_mask(mask))[-int(cpus) :])
        node.adopt(holder(f"f{numa_node}", taken))
    return node


def holder(name: str, cpus: CpuSet) -> PodAllocation:
    container = ContainerAllocation("c", CpuMask(cpus.mask))
    return PodAllocation(f"uid-{name}", "default", name, (container,))


def numa_nodes_of(node: Node, found: PodAllocation) -> list[int]:
    cpus = CpuSet.from_mask(found.cpus)
    return [one for one, there in node.policy.topology.numa_cpus.items() if there & cpus]


@pytest.mark.parametrize("topology_policy", ["None", "BestEffort", "Restricted", "SingleNUMANode"])
@pytest.mark.parametrize("memory", ["None", "Static", "Preferred", "SingleNUMA"])
@pytest.mark.parametrize(
    ("preferred", "numa_node"),
    [pytest.param("Packed", 1, id="Packed"), pytest.param("Spread", 2, id="Spread")],
)
def test_the_fullest_or_the_emptiest_numa_node_that_has_room(
    topology_policy: str, memory: str, preferred: str, numa_node: int
) -> None:
    spec = policy(
        topology={"policy": topology_policy}, memory={"policy": memory}, **prefers(preferred)
    )
    node = filled(spec)
    assert numa_nodes_of(node, node.place(pod("new", "2"))) == [numa_node]


@pytest.mark.parametrize("topology_policy", ["BestEffort", "Restricted", "SingleNUMANode"])
def test_none_is_the_lowest_as_with_the_kubelet(topology_policy: str) -> None:
    node = filled(policy(topology={"policy": topology_policy}))
    assert numa_nodes_of(node, node.place(pod("new", "2"))) == [0]


def test_a_numa_node_without_room_is_none_of_several() -> None:
    node = filled(policy(**SINGLE, **prefers("Packed")))
    assert numa_nodes_of(node, node.place(pod("new", "3"))) == [0]
    assert numa_nodes_of(node, node.place(pod("next", "5"))) == [2]


def test_memory_counts_as_much_as_cpus() -> None:
    """NUMA node 1 has fewest CPUs left and all memory, 3 has no memory left but 2 GiB."""
    spec = policy(**SINGLE, memory={"policy": "Static"}, **prefers("Packed"))
    node = filled(spec)
    assert node.memory is not None
    node.memory.withhold(MEMORY, 3, 14 * GIB)
    assert numa_nodes_of(node, node.place(pod("new", "2", memory="1Gi"))) == [3]


def test_a_container_without_cpus_is_placed_by_its_memory() -> None:
    for preferred, numa_node in (("Packed", 3), ("Spread", 0)):
        spec = policy(**SINGLE, memory={"policy": "Static"}, **prefers(preferred))
        node = Node(resolve(FOUR, spec))
        assert node.memory is not None
        node.memory.withhold(MEMORY, 3, 8 * GIB)
        found = node.place(pod("new", "500m", memory="1Gi"))
        assert [one.node_ids for one in found.memory] == [(numa_node,)]


def test_equal_ones_are_taken_by_number() -> None:
    node = Node(resolve(FOUR, policy(reserved={"cpus": "31"}, **SINGLE, **prefers("Spread"))))
    placed = [numa_nodes_of(node, node.place(pod(f"p{number}", "2"))) for number in range(5)]
    assert placed == [[0], [1], [2], [3], [0]]


def test_a_pod_that_needs_several_numa_nodes_is_placed_as_without() -> None:
    found = [
        Node(resolve(FOUR, policy(topology={"policy": "Restricted"}, **prefers(one)))).place(
            pod("wide", "12")
        )
        for one in ("None", "Packed", "Spread")
    ]
    assert found[0] == found[1] == found[2]


# What the other options mean then.


def test_distributed_cpus_are_those_of_pods_that_need_several_numa_nodes() -> None:
    options = {"options": {"distributeCPUsAcrossNUMA": True}}
    for preferred, numa_node in (("Packed", 1), ("Spread", 2)):
        node = filled(policy(**options, **prefers(preferred)))
        assert numa_nodes_of(node, node.place(pod("new", "2"))) == [numa_node]
    node = Node(resolve(FOUR, policy(**options, **prefers("Packed"))))
    wide = CpuSet.from_mask(node.place(pod("wide", "12")).cpus)
    assert sorted(len(wide & there) for there in FOUR.numa_cpus.values()) == [0, 0, 6, 6]


def test_spread_over_cores_is_within_the_numa_node() -> None:
    spec = policy(options={"distributeCPUsAcrossCores": True}, **prefers("Spread"))
    node = filled(spec)
    cpus = CpuSet.from_mask(node.place(pod("new", "3")).cpus)
    assert cpus <= FOUR.numa_cpus[2]


def test_only_whole_cores_make_room_where_these_are_demanded() -> None:
    """Packed would take NUMA node 0, of which half a core is left beside the reserved CPU."""
    spec = policy(options={"fullPCPUsOnly": True}, **SINGLE, **prefers("Packed"))
    node = filled(spec)
    cpus = CpuSet.from_mask(node.place(pod("new", "2")).cpus)
    assert cpus == CpuSet.parse("8-9")
    assert CpuSet.from_mask(node.place(pod("next", "4")).cpus) <= FOUR.numa_cpus[3]


def test_a_numa_node_whose_cores_do_not_add_up_is_passed_over() -> None:
    """Cores of two CPUs on NUMA node 0, one of two and two of one on 1: only these make three."""
    cores = (0, 0, 2, 2, 4, 4, 6, 7)
    topology = Topology(
        cpus=tuple(Cpu(cpu, core, cpu // 4, -1, cpu // 4) for cpu, core in enumerate(cores)),
        numa_nodes=(NumaNode(0, 8 * GIB), NumaNode(1, 8 * GIB)),
    )
    whole = {"reserved": {"cpus": "7"}, "options": {"fullPCPUsOnly": True}}
    node = Node(resolve(topology, policy(**whole, **SINGLE, **prefers("Packed"))))
    assert CpuSet.from_mask(node.place(pod("new", "3")).cpus) == CpuSet.parse("4-6")


def test_the_numa_node_of_an_init_container_comes_first() -> None:
    node = filled(policy(**SINGLE, **prefers("Packed")))
    init = [{"name": "init", "resources": resources("3")}]
    found = node.place(pod("new", "2", initContainers=init))
    assert numa_nodes_of(node, found) == [0]
    assert found.cpus.bit_count() == 3


def test_the_numa_node_comes_before_an_uncore_cache_that_has_room() -> None:
    """On NUMA node 0 the CPUs that are left are of two caches, on 1 of one."""
    topology = Topology(
        cpus=tuple(Cpu(cpu, cpu, cpu // 8, cpu // 4, cpu // 8) for cpu in range(16)),
        numa_nodes=(NumaNode(0, 8 * GIB), NumaNode(1, 8 * GIB)),
    )
    spec = policy(options={"preferAlignCPUsByUncoreCache": True}, **prefers("Packed"))
    node = Node(resolve(topology, spec))
    node.adopt(holder("first", CpuSet.parse("1-2,4-5")))
    cpus = CpuSet.from_mask(node.place(pod("new", "3")).cpus)
    assert str(cpus) == "3,6-7"


def test_with_align_by_socket_the_numa_node_chooses_the_socket() -> None:
    topology = replace(
        FOUR, cpus=tuple(replace(cpu, socket=cpu.numa_node // 2) for cpu in FOUR.cpus)
    )
    spec = policy(
        topology={"policy": "BestEffort"}, options={"alignBySocket": True}, **prefers("Spread")
    )
    node = filled(spec, topology)
    cpus = CpuSet.from_mask(node.place(pod("new", "2")).cpus)
    assert cpus <= topology.socket_cpus[1]


def test_the_nearest_numa_nodes_are_looked_for_first() -> None:
    rows = ((10, 20, 20, 20), (20, 10, 20, 20), (20, 20, 10, 20), (20, 20, 20, 11))
    numa_nodes = zip(FOUR.numa_nodes, rows, strict=True)
    topology = replace(FOUR, numa_nodes=tuple(replace(n, distances=row) for n, row in numa_nodes))
    spec = policy(
        topology={"policy": "BestEffort", "preferClosestNUMANodes": True}, **prefers("Spread")
    )
    node = Node(resolve(topology, spec))
    placed = [numa_nodes_of(node, node.place(pod(f"p{n}", "2"))) for n in range(4)]
    assert placed == [[0], [1], [2], [1]]  # never 3, of which nothing is given out


def test_each_container_is_placed_by_itself_unless_the_scope_is_the_pod() -> None:
    for scope, apart in (("Container", True), ("Pod", False)):
        spec = policy(topology={"policy": "BestEffort", "scope": scope}, **prefers("Spread"))
        node = Node(resolve(FOUR, spec))
        found = node.place(pod("two", "2", "2"))
        assert (len(numa_nodes_of(node, found)) == 2) is apart


# Laws.


@given(st.one_of(situations(), situations(hybrid=True)), st.sampled_from(["Packed", "Spread"]))
@settings(max_examples=400, deadline=None)
def test_what_is_placed_without_a_preference_is_placed_with_one(
    situation: Situation, preferred: str
) -> None:
    """And on one NUMA node, if it was on one; the same pods have what they have before."""
    topology, drawn, objects = situation
    *others, last = (parse_pod(each) for each in objects)
    with_one = drawn.model_copy(update={"placement": policy(**prefers(preferred)).placement})
    try:
        without = drawn.model_copy(update={"placement": policy().placement})
        plain = Node(resolve(topology, without))
    except PolicyError:
        return
    node = Node(resolve(topology, with_one))
    for other in others:
        try:
            node.adopt(plain.place(other))
        except PlacementError:
            continue
    try:
        before = plain.place(last)
    except PlacementError:
        return
    after = node.place(last)
    assert sizes_of(after) == sizes_of(before)
    if len(sizes_of(before)) == 1 and len(numa_nodes_of(plain, before)) == 1:
        assert len(numa_nodes_of(node, after)) == 1


def sizes_of(found: PodAllocation) -> dict[str, int]:
    return {one.name: one.cpus.bit_count() for one in found.containers if one.exclusive}


@given(st.lists(st.integers(1, 6), max_size=9), st.integers(1, 8))
@settings(max_examples=200, deadline=None)
def test_no_numa_node_with_room_is_fuller_or_emptier(sizes: list[int], count: int) -> None:
    for preferred, sign in (("Packed", -1), ("Spread", 1)):
        node = Node(resolve(FOUR, policy(**SINGLE, **prefers(preferred))))
        for number, size in enumerate(sizes):
            try:
                node.place(pod(f"p{number}", str(size)))
            except PlacementError:
                continue
        has = {one: amounts[CPU] for one, amounts in numa_amounts(node).items()}
        shares = {
            one: sign * (1 - cpus.available / cpus.allocatable)
            for one, cpus in has.items()
            if cpus.available >= count
        }
        if shares:
            (found,) = numa_nodes_of(node, node.place(pod("new", str(count))))
            assert shares[found] == min(shares.values())
