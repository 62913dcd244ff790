"""The few places where the planner on purpose does better than the kubelet: docs/parity.md."""

from typing import Any

import pytest

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    KUBELET,
    NO_QUIRKS,
    KubeletQuirks,
    Node,
    PlacementError,
    PodView,
    plan_node,
    resolve,
)
from support.values.placement import GIB, NO_UIDS, machine, pod, policy, resources


def cpus_of(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {f"{entry.pod}/{entry.container}": str(entry.cpus) for entry in spec.containers}


def hybrid() -> Topology:
    """Two cores of two threads (CPUs 0-3) and four of one (4-7), as on laptops."""
    rows = [Cpu(cpu, cpu // 2 * 2 if cpu < 4 else cpu, 0, 0, 0) for cpu in range(8)]
    return Topology(tuple(rows), (NumaNode(0, 8 * GIB),))


@pytest.mark.parametrize("quirks", [NO_QUIRKS, KUBELET], ids=["numapin", "kubelet"])
def test_hybrid_cores_are_not_counted_by_their_average(quirks: KubeletQuirks) -> None:
    """The kubelet takes 8 CPUs on 6 cores for cores of one thread, and hands out halves."""
    whole = policy(reserved={"cpus": "7"}, options={"fullPCPUsOnly": True})
    node = Node(resolve(hybrid(), whole, quirks))
    given = [str(node.place(pod(f"p{n}", str(n))).containers[0].cpu_set) for n in (3, 2)]
    assert given == ["4-6", "0-1"]
    with pytest.raises(PlacementError) as refused:
        node.place(pod("odd", "1"))
    assert refused.value.reason == "SMTAlignmentError"
    assert node.place(pod("even", "2")).containers[0].cpu_set == CpuSet.parse("2-3")


def uneven_sockets() -> Topology:
    """Sockets of three and one CPUs: on average two."""
    rows = [Cpu(cpu, cpu, 0 if cpu < 3 else 1, -1, 0) for cpu in range(4)]
    return Topology(tuple(rows), (NumaNode(0, 8 * GIB),))


def test_a_socket_in_partial_use_is_never_taken_whole() -> None:
    """The kubelet compares what is free with the average socket, then takes all of it."""
    reserve = policy(reserved={"cpus": "0"})
    as_kubelet = Node(resolve(uneven_sockets(), reserve, KUBELET))
    assert str(as_kubelet.place(pod("a", "3")).containers[0].cpu_set) == "0-2", "0 is reserved"
    plan = plan_node(uneven_sockets(), reserve, None, [pod("a", "3")], NO_UIDS)
    assert cpus_of(plan.spec) == {"a/c0": "1-3"}


def test_the_shared_pool_is_never_emptied_by_strict_reservation() -> None:
    one_node = machine(4, threads=1, memory_bytes=GIB)
    strict = policy(reserved={"cpus": "0", "strict": True})
    as_kubelet = Node(resolve(one_node, strict, KUBELET))
    as_kubelet.place(pod("a", "3"))
    assert str(as_kubelet.shared) == ""
    plan = plan_node(one_node, strict, None, [pod("a", "3")], NO_UIDS)
    assert [each.reason for each in plan.spec.refused] == ["SharedPoolEmpty"]


def test_numa_node_ids_above_64_are_numa_nodes_like_others() -> None:
    """The kubelet's masks end at 63: it cannot start there."""
    rows = tuple(Cpu(cpu, cpu, 0, -1, 60 + cpu // 2 * 60) for cpu in range(6))
    nodes = tuple(NumaNode(node, 4 * GIB) for node in (60, 120, 180))
    single = policy(topology={"policy": "SingleNUMANode"}, memory={"policy": "Static"})
    pods = [pod("a", "2"), pod("b", "2"), pod("c", "2")]
    plan = plan_node(Topology(rows, nodes), single, None, pods, NO_UIDS)
    assert [(str(e.cpus), str(e.mems)) for e in plan.spec.containers] == [
        ("2-3", "120"),
        ("4-5", "180"),
    ]
    assert [each.reason for each in plan.spec.refused] == ["TopologyAffinityError"]


@pytest.mark.parametrize("count", [64, 128])
def test_many_numa_nodes_are_searched_not_listed(count: int) -> None:
    """The kubelet refuses more than 8 by default, and otherwise lists 2 to their power."""
    rows = tuple(Cpu(cpu, cpu, cpu // 16, -1, cpu // 4) for cpu in range(count * 4))
    near = [tuple(10 + abs(a - b) % 9 for b in range(count)) for a in range(count)]
    nodes = tuple(NumaNode(node, GIB, {}, near[node]) for node in range(count))
    wide = policy(
        options={"distributeCPUsAcrossNUMA": True},
        topology={"policy": "BestEffort", "preferClosestNUMANodes": True},
        memory={"policy": "Static"},
    )
    plan = plan_node(Topology(rows, nodes), wide, None, [pod("a", "64", memory="16Gi")], NO_UIDS)
    (entry,) = plan.spec.containers
    assert len(entry.cpus) == 64
    assert len(entry.mems) == 16


def test_distances_are_looked_up_by_numa_node_not_by_position() -> None:
    """With sparse ids the kubelet reads the wrong distance, or beyond the end."""
    ids = (0, 4, 9)
    distances = {0: (10, 30, 12), 4: (30, 10, 30), 9: (12, 30, 10)}
    rows = tuple(Cpu(cpu, cpu, 0, -1, ids[cpu // 2]) for cpu in range(6))
    nodes = tuple(NumaNode(node, GIB, {}, distances[node]) for node in ids)
    near = policy(
        reserved={"cpus": "2"},
        topology={"policy": "BestEffort", "preferClosestNUMANodes": True},
    )
    plan = plan_node(Topology(rows, nodes), near, None, [pod("a", "4")], NO_UIDS)
    assert cpus_of(plan.spec) == {"a/c0": "0-1,4-5"}


def test_cpus_of_a_completed_init_container_are_released_while_the_pod_runs() -> None:
    one_node = machine(8, threads=1, memory_bytes=8 * GIB)
    init = [{"name": "i", "resources": resources("5", "1Gi")}]
    starting = pod("a", "2", initContainers=init)
    memory = policy(memory={"policy": "Static"})
    before = plan_node(one_node, memory, None, [starting], NO_UIDS).spec
    assert cpus_of(before) == {"a/i": "1-5", "a/c0": "1-2"}
    status = {"initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}]}
    running = parse_pod(
        {
            "metadata": {"name": "a", "uid": "uid-a"},
            "spec": {
                "initContainers": init,
                "containers": [{"name": "c0", "resources": resources("2")}],
            },
            "status": status,
        }
    )
    after = plan_node(one_node, memory, before, [running, pod("b", "5")], NO_UIDS).spec
    assert cpus_of(after) == {"a/c0": "1-2", "b/c0": "3-7"}


def whole_pod(name: str, cpus: str, *own: str) -> PodView:
    return pod(name, *own, resources=resources(cpus, "1Gi"))


def test_cpus_of_a_pod_that_none_of_its_containers_can_use_stay_shared() -> None:
    one_node = machine(8, threads=1, memory_bytes=8 * GIB)
    scoped = policy(topology={"policy": "BestEffort", "scope": "Pod"})
    as_kubelet = Node(resolve(one_node, scoped, KUBELET))
    as_kubelet.place(whole_pod("a", "5", "2"))
    assert str(as_kubelet.shared) == "0,6-7"
    spec = plan_node(one_node, scoped, None, [whole_pod("a", "5", "2")], NO_UIDS).spec
    assert spec.pools is not None
    assert (cpus_of(spec), str(spec.pools.shared)) == ({"a/c0": "1-2"}, "0,3-7")


def test_a_refused_pod_leaves_nothing_behind() -> None:
    """The kubelet forgets CPUs that it gave to a pod whose containers then do not fit."""
    one_node = machine(8, threads=1, memory_bytes=8 * GIB)
    scoped = policy(topology={"policy": "BestEffort", "scope": "Pod"})
    too_much = whole_pod("a", "3", "2", "2")
    for quirks, shared in ((KUBELET, "0,4-7"), (NO_QUIRKS, "0-7")):
        node = Node(resolve(one_node, scoped, quirks))
        with pytest.raises(PlacementError, match="wanted 2 CPUs, 1 free"):
            node.place(too_much)
        assert str(node.shared) == shared


def test_a_container_that_asks_no_memory_is_not_refused_for_memory() -> None:
    """The kubelet looks for NUMA nodes to bind nothing on, and finds none."""
    one_node = machine(8, threads=1, memory_bytes=8 * GIB)
    static = policy(memory={"policy": "Static"})
    view = parse_pod(
        {
            "metadata": {"name": "a", "uid": "a"},
            "spec": {
                "containers": [{"name": "c0"}],
                "resources": resources("4", "1Gi"),
            },
        }
    )
    as_kubelet = Node(resolve(one_node, static, KUBELET))
    with pytest.raises(PlacementError):
        as_kubelet.place(view)
    assert plan_node(one_node, static, None, [view], NO_UIDS).spec.refused == ()


@pytest.mark.parametrize(
    ("fields", "size", "mems", "reason"),
    [
        ({"memory": {"policy": "SingleNUMA"}}, "3Gi", "1", None),
        ({"memory": {"policy": "SingleNUMA"}}, "5Gi", None, "NotEnoughMemory"),
        ({"memory": {"policy": "Preferred"}}, "3Gi", "1", None),
        ({"memory": {"policy": "Preferred"}}, "5Gi", "0-1", None),
        ({"memory": {"policy": "Preferred"}}, "9Gi", None, "NotEnoughMemory"),
        (
            {"memory": {"policy": "Preferred"}, "topology": {"policy": "SingleNUMANode"}},
            "5Gi",
            "0-1",
            None,
        ),
    ],
)
def test_our_own_memory_policies(
    fields: dict[str, Any], size: str, mems: str | None, reason: str | None
) -> None:
    """Near the CPUs, which the packing takes from the fuller NUMA node 1."""
    two_nodes = machine(8, threads=1, numa_nodes=2, memory_bytes=4 * GIB)
    ours = policy(reserved={"cpus": "4"}, **fields)
    spec = plan_node(two_nodes, ours, None, [pod("a", "3", memory=size)], NO_UIDS).spec
    assert [str(entry.mems) for entry in spec.containers] == ([mems] if mems else [])
    assert [each.reason for each in spec.refused] == ([reason] if reason else [])
    if mems:
        again = plan_node(two_nodes, ours, spec, [pod("a", "3", memory=size)], NO_UIDS).spec
        assert again == spec


@pytest.mark.parametrize("memory", ["SingleNUMA", "Preferred"])
def test_our_own_memory_policies_choose_cpus_where_the_memory_is(memory: str) -> None:
    """NUMA node 1 is the fuller one, which the packing takes first, but its memory is in use."""
    two_nodes = machine(8, threads=1, numa_nodes=2, memory_bytes=4 * GIB)
    ours = policy(reserved={"cpus": "4"}, memory={"policy": memory})
    first = [pod("a", "1", memory="3Gi")]
    spec = plan_node(two_nodes, ours, None, first, NO_UIDS).spec
    assert [(str(entry.cpus), str(entry.mems)) for entry in spec.containers] == [("5", "1")]
    later = plan_node(two_nodes, ours, spec, [*first, pod("b", "2", memory="2Gi")], NO_UIDS).spec
    assert [(str(e.cpus), str(e.mems)) for e in later.containers] == [("5", "1"), ("0-1", "0")]


@pytest.mark.parametrize("memory", ["SingleNUMA", "Preferred"])
def test_our_own_memory_policies_part_cpus_from_memory_only_if_they_must(memory: str) -> None:
    two_nodes = machine(8, threads=1, numa_nodes=2, memory_bytes=4 * GIB)
    ours = policy(reserved={"cpus": "4"}, memory={"policy": memory})
    pods = [pod("a", "1", memory="3Gi"), pod("b", "4", memory="1Gi"), pod("c", "2", memory="3Gi")]
    spec = plan_node(two_nodes, ours, None, pods, NO_UIDS).spec
    placed = {entry.pod: (str(entry.cpus), str(entry.mems)) for entry in spec.containers}
    assert placed == {"a": ("5", "1"), "b": ("0-3", "0"), "c": ("6-7", "0")}


def test_a_numa_node_without_huge_pages_of_a_size_has_none_to_bind() -> None:
    """The kubelet looks into a table that the node does not have, and ends."""
    rows = tuple(Cpu(cpu, cpu, 0, -1, cpu // 4) for cpu in range(8))
    two_nodes = Topology(rows, (NumaNode(0, 4 * GIB), NumaNode(1, 4 * GIB, {"2Mi": 64})))
    static = policy(memory={"policy": "Static"}, topology={"policy": "SingleNUMANode"})
    huge = resources("1", **{"hugepages-2Mi": "32Mi"})
    view = parse_pod(
        {
            "metadata": {"name": "a", "uid": "a"},
            "spec": {"containers": [{"name": "c0", "resources": huge}]},
        }
    )
    spec = plan_node(two_nodes, static, None, [view], NO_UIDS).spec
    assert [(str(e.cpus), str(e.mems)) for e in spec.containers] == [("4", "1")]


@pytest.mark.parametrize(
    ("memory", "bound_to"), [("Static", "0-1"), ("SingleNUMA", "")], ids=["Static", "SingleNUMA"]
)
def test_huge_pages_of_an_init_container_alone_are_not_counted_in_pod_scope(
    memory: str, bound_to: str
) -> None:
    """As the kubelet; numapin's own memory policy keeps the container in one NUMA node."""
    rows = tuple(Cpu(cpu, cpu, 0, -1, cpu // 4) for cpu in range(8))
    two_nodes = Topology(rows, tuple(NumaNode(n, 4 * GIB, {"2Mi": 16}) for n in (0, 1)))
    aligned = policy(
        memory={"policy": memory}, topology={"policy": "SingleNUMANode", "scope": "Pod"}
    )
    init = {"name": "i0", "resources": resources("1", **{"hugepages-2Mi": "48Mi"})}
    view = parse_pod(
        {
            "metadata": {"name": "a", "uid": "a"},
            "spec": {
                "initContainers": [init],
                "containers": [{"name": "c0", "resources": resources("1")}],
            },
        }
    )
    spec = plan_node(two_nodes, aligned, None, [view], NO_UIDS).spec
    assert [str(e.mems) for e in spec.containers if e.container == "i0"] == (
        [bound_to] if bound_to else []
    )
    assert bool(spec.refused) is not bool(bound_to)
