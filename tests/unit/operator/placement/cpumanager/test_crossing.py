"""Cores whose threads are in several NUMA nodes, and NUMA nodes with parts of several sockets."""

import json
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    KUBELET,
    NO_QUIRKS,
    KubeletQuirks,
    Node,
    PlacementError,
    PodView,
    PolicyError,
    plan_node,
    resolve,
)
from support.values.placement import GIB, NO_UIDS, pod, policy
from support.values.situations import MIB, pod_objects, policies

BEST_EFFORT = {"policy": "BestEffort"}


def crossed(cpus: int = 8) -> Topology:
    """Cores of neighbouring CPUs; one NUMA node has the even ones, the other the odd ones."""
    rows = tuple(Cpu(cpu, cpu // 2 * 2, 0, -1, cpu % 2) for cpu in range(cpus))
    return Topology(rows, (NumaNode(0, 16 * GIB), NumaNode(1, 16 * GIB)))


def given_to(node: Node, *counts: int) -> list[str]:
    """The CPUs of containers placed one after the other, or why one is refused."""
    found = []
    for number, count in enumerate(counts):
        try:
            found.append(str(node.place(pod(f"p{number}", str(count))).containers[0].cpu_set))
        except PlacementError as refused:
            found.append(refused.reason)
    return found


@pytest.mark.parametrize(
    ("topology", "options", "quirks", "given"),
    [
        pytest.param("None", {}, NO_QUIRKS, ["2-3", "4-7"], id="none"),
        pytest.param("BestEffort", {}, NO_QUIRKS, ["2-3", "4-7"], id="best-effort"),
        pytest.param("BestEffort", {}, KUBELET, ["2,4", "3,5-7"], id="best-effort-of-kubelet"),
        pytest.param(
            "BestEffort",
            {"distributeCPUsAcrossNUMA": True},
            NO_QUIRKS,
            ["2-3", "4-7"],
            id="distributed",
        ),
        pytest.param(
            "BestEffort",
            {"preferAlignCPUsByUncoreCache": True},
            NO_QUIRKS,
            ["2-3", "4-7"],
            id="caches",
        ),
        pytest.param("BestEffort", {"alignBySocket": True}, NO_QUIRKS, ["2-3", "4-7"], id="socket"),
        pytest.param(
            "Restricted", {"alignBySocket": True}, NO_QUIRKS, ["2-3", "4-7"], id="one-socket"
        ),
        pytest.param("Restricted", {}, NO_QUIRKS, ["SMTAlignmentError"] * 2, id="restricted"),
        pytest.param("SingleNUMANode", {}, NO_QUIRKS, ["SMTAlignmentError"] * 2, id="single"),
    ],
)
def test_a_core_in_two_numa_nodes_is_given_whole_or_not_at_all(
    topology: str, options: dict[str, bool], quirks: KubeletQuirks, given: list[str]
) -> None:
    spec = policy(
        reserved={"count": 2},
        options={"fullPCPUsOnly": True} | options,
        topology={"policy": topology},
    )
    assert given_to(Node(resolve(crossed(), spec, quirks)), 2, 4) == given


def test_the_refusal_says_that_cores_cross_numa_nodes() -> None:
    spec = policy(options={"fullPCPUsOnly": True}, topology={"policy": "SingleNUMANode"})
    with pytest.raises(PlacementError, match="cores with threads in several NUMA nodes do not"):
        Node(resolve(crossed(), spec)).place(pod("a", "2"))


def test_cores_in_one_numa_node_come_first() -> None:
    """CPUs 2 and 3 are a core in two NUMA nodes, the others are cores in one."""
    nodes = (0, 0, 0, 1, 0, 0, 1, 1)
    rows = tuple(Cpu(cpu, cpu // 2 * 2, 0, -1, node) for cpu, node in enumerate(nodes))
    machine = Topology(rows, (NumaNode(0, GIB), NumaNode(1, GIB)))
    spec = policy(options={"fullPCPUsOnly": True}, topology={"policy": "Restricted"})
    assert given_to(Node(resolve(machine, spec)), 2, 2) == ["4-5", "6-7"]
    wide = policy(options={"fullPCPUsOnly": True}, topology=BEST_EFFORT)
    assert given_to(Node(resolve(machine, wide)), 4, 2) == ["4-7", "2-3"]


def hybrid() -> Topology:
    """Cores of three and of two CPUs in one NUMA node."""
    return Topology(tuple(Cpu(n, n // 3 * 3, 0, -1, 0) for n in range(5)), (NumaNode(0, GIB),))


@pytest.mark.parametrize(
    ("machine", "count", "given"),
    [
        pytest.param(crossed(), 6, "2-7", id="crossing"),
        pytest.param(hybrid(), 3, "0-2", id="hybrid"),
    ],
)
def test_a_count_of_reserved_cpus_may_be_a_part_of_a_core(
    machine: Topology, count: int, given: str
) -> None:
    spec = policy(reserved={"count": 1}, options={"fullPCPUsOnly": True}, topology=BEST_EFFORT)
    node = Node(resolve(machine, spec))
    assert node.policy.reserved.bit_count() == 1
    assert given_to(node, count) == [given]


@pytest.mark.parametrize(
    ("quirks", "given"), [(NO_QUIRKS, ["4-5"]), (KUBELET, ["1,3"])], ids=["numapin", "kubelet"]
)
def test_parts_of_reserved_cores_do_not_count_for_a_numa_node(
    quirks: KubeletQuirks, given: list[str]
) -> None:
    """NUMA node 0 has CPUs 1 and 3 left, of two cores whose other threads are reserved."""
    rows = tuple(Cpu(cpu, cpu // 2 * 2, 0, -1, cpu // 4) for cpu in range(8))
    machine = Topology(rows, (NumaNode(0, GIB), NumaNode(1, GIB)))
    spec = policy(
        reserved={"cpus": "0,2"},
        options={"fullPCPUsOnly": True},
        topology={"policy": "SingleNUMANode"},
    )
    assert given_to(Node(resolve(machine, spec, quirks)), 2) == given


def crossing_sockets() -> Topology:
    """Sockets of CPUs 0-7 and 8-15; NUMA nodes 0-3,8-11 and 4-7,12-15."""
    rows = tuple(Cpu(cpu, cpu, cpu // 8, -1, cpu // 4 % 2) for cpu in range(16))
    return Topology(rows, (NumaNode(0, GIB), NumaNode(1, GIB)))


@pytest.mark.parametrize(
    ("quirks", "given"),
    [
        (NO_QUIRKS, ["1-3", "8-13", "4-7"]),
        (KUBELET, ["1-3", "8-13", "4-5,14-15"]),
    ],
    ids=["numapin", "kubelet"],
)
@pytest.mark.parametrize("scope", ["BestEffort", "Restricted"])
def test_cpus_aligned_by_socket_are_in_one_where_numa_nodes_cross_sockets(
    quirks: KubeletQuirks, given: list[str], scope: str
) -> None:
    spec = policy(options={"alignBySocket": True}, topology={"policy": scope})
    assert given_to(Node(resolve(crossing_sockets(), spec, quirks)), 3, 6, 4) == given


@st.composite
def crossing_machines(draw: st.DrawFn) -> Topology:
    """Cores of which some have threads in several NUMA nodes; sockets and caches lie anyhow."""
    ids = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(sorted))
    hybrid = draw(st.booleans())
    cpus: list[Cpu] = []
    for core in range(draw(st.integers(2, 7))):
        threads = draw(st.integers(1, 3)) if hybrid else 2
        first, home = len(cpus), draw(st.sampled_from(ids))
        crosses, socket = draw(st.booleans()), draw(st.integers(0, 1))
        for thread in range(threads):
            node = draw(st.sampled_from(ids)) if crosses else home
            cache = draw(st.sampled_from([-1, node, core // 2]))
            cpus.append(Cpu(first + thread, first, socket, cache, node))
    sizes = {node: draw(st.integers(1, 64)) * 64 * MIB for node in ids}
    return Topology(tuple(cpus), tuple(NumaNode(node, sizes[node], {"2Mi": 16}) for node in ids))


@st.composite
def situations(draw: st.DrawFn) -> tuple[Topology, CpuPolicySpec, list[PodView]]:
    """Random machines, pods, and policies that give whole cores."""
    topology = draw(crossing_machines())
    spec = draw(policies(topology))
    changed = {"full_pcpus_only": True, "distribute_cpus_across_cores": False}
    if spec.topology.policy != "SingleNUMANode" and len(topology.socket_cpus) <= len(
        {cpu.numa_node for cpu in topology.cpus}
    ):
        changed["align_by_socket"] = draw(st.booleans())
    options = spec.options.model_copy(update=changed)
    objects = draw(pod_objects())
    return (
        topology,
        spec.model_copy(update={"options": options}),
        [parse_pod(one) for one in objects],
    )


def placed(topology: Topology, spec: CpuPolicySpec, pods: Sequence[PodView]) -> Node | None:
    try:
        node = Node(resolve(topology, spec))
    except PolicyError:
        return None
    for each in pods:
        try:
            node.place(each)
        except PlacementError:
            continue
    return node


def fewest_numa_nodes(topology: Topology, count: int) -> int:
    """How many NUMA nodes have so many CPUs in cores that lie in one of them; all if none have."""
    inside = [
        sum(len(core) for core in topology.core_cpus.values() if core <= cpus)
        for cpus in topology.numa_cpus.values()
        if cpus
    ]
    for size in range(1, len(inside) + 1):
        if any(sum(chosen) >= count for chosen in combinations(inside, size)):
            return size
    return len(inside)


@given(situations())
@settings(max_examples=300, deadline=None)
def test_no_answer_breaks_a_promise_of_the_policy(
    situation: tuple[Topology, CpuPolicySpec, list[PodView]],
) -> None:
    topology, spec, pods = situation
    node = placed(topology, spec, pods)
    if node is None:
        return
    given_out = CpuSet()
    for uid, allocation in node.allocations.items():
        own = CpuSet.from_mask(allocation.cpus)
        assert own.isdisjoint(given_out | CpuSet.from_mask(node.policy.reserved) | node.shared)
        given_out |= own
        if allocation.pod_level is not None:
            continue
        for container in allocation.containers:
            if not container.exclusive:
                continue
            cpus = container.cpu_set
            for core in topology.core_cpus.values():
                assert core <= cpus or core.isdisjoint(cpus)
            spanned = [one for one in topology.numa_cpus.values() if not cpus.isdisjoint(one)]
            if spec.topology.policy == "SingleNUMANode":
                assert len(spanned) == 1
            if spec.topology.policy == "Restricted" and not spec.options.align_by_socket:
                wanted = len(cpus) if spec.topology.scope == "Container" else len(own)
                assert len(spanned) <= fewest_numa_nodes(topology, wanted), uid
    assert given_out | node.shared | CpuSet.from_mask(node.policy.reserved) == topology.online


@given(situations())
@settings(max_examples=100, deadline=None)
def test_planning_again_changes_nothing_and_nothing_is_outdated(
    situation: tuple[Topology, CpuPolicySpec, list[PodView]],
) -> None:
    topology, spec, pods = situation
    try:
        first = plan_node(topology, spec, None, pods, NO_UIDS)
    except PolicyError:
        return
    again = plan_node(topology, spec, first.spec, pods, NO_UIDS)
    assert json.dumps(again.spec.to_wire()) == json.dumps(first.spec.to_wire())
    parts = [one.why for one in again.outdated if "parts of cores" in one.why]
    assert not parts


@given(situations())
@settings(max_examples=100, deadline=None)
def test_whole_cores_are_given_wherever_locality_does_not_matter(
    situation: tuple[Topology, CpuPolicySpec, list[PodView]],
) -> None:
    topology, spec, _ = situation
    anywhere = spec.topology.model_copy(update={"policy": "BestEffort"})
    spec = spec.model_copy(update={"topology": anywhere})
    try:
        node = Node(resolve(topology, spec))
    except PolicyError:
        return
    free = CpuSet.from_mask(node.policy.cpu_groups.whole_cores(node.cpus.free))
    sizes = [len(core) for core in topology.core_cpus.values() if core <= free]
    if len(set(sizes)) != 1 or free == node.shared:
        return
    given_cpus = node.place(pod("all", str(len(free)), memory="1Mi")).containers[0].cpu_set
    assert given_cpus == free
