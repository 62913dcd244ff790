"""Which containers an edited policy would not place as they are."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_api.topology import NO_CACHE, Cpu, NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, PolicyError, mark_outdated, plan_with, resolve
from support.values.placement import NO_UIDS, granted_pod, machine, pod, policy
from support.values.situations import Situation, situations

TWO_NUMA_NODES = machine(16, numa_nodes=2)


def planned(pods: list[PodView], **fields: Any) -> NodeAssignmentSpec:
    """The pods on 16 CPUs of 2 NUMA nodes, two threads on each core."""
    return plan_with(resolve(TWO_NUMA_NODES, policy(**fields)), None, pods, NO_UIDS).spec


EDITS: list[Any] = [
    pytest.param({}, "", id="nothing"),
    pytest.param({"cpuQuota": "Keep"}, "", id="cpuQuota"),
    pytest.param({"onUnsatisfiable": "Evict"}, "", id="onUnsatisfiable"),
    pytest.param({"reserved": {"cpus": "0", "strict": True}}, "", id="reserved.strict"),
    pytest.param({"reserved": {"cpus": "0,8"}}, "uses 8, which is reserved now", id="reserved"),
    pytest.param(
        {"reserved": {"cpus": "0-1,12", "strict": True}}, "12, which is", id="reserved.strict-more"
    ),
    pytest.param({"options": {"fullPCPUsOnly": True}}, "SMTAlignmentError", id="fullPCPUsOnly"),
    pytest.param({"options": {"distributeCPUsAcrossNUMA": True}}, "", id="distributes"),
    pytest.param({"topology": {"policy": "BestEffort"}}, "", id="BestEffort"),
    pytest.param(
        {"topology": {"policy": "SingleNUMANode"}}, "TopologyAffinityError", id="SingleNUMANode"
    ),
    pytest.param({"memory": {"policy": "Static"}}, "has no memory bound", id="memory"),
    pytest.param({"pods": {"qosClasses": ["Burstable"]}}, "not selected", id="qosClasses"),
]


@pytest.mark.parametrize(("edit", "why"), EDITS)
def test_an_edit_and_a_container_on_an_odd_number_of_cpus_of_two_numa_nodes(
    edit: dict[str, Any], why: str
) -> None:
    pods = [pod("a", "9")]
    before = planned(pods)
    after = resolve(TWO_NUMA_NODES, policy(**edit))
    plan = plan_with(after, before, pods, NO_UIDS)
    spec, found = mark_outdated(after, plan.spec, pods, edited=True)
    assert [one.outdated for one in spec.containers] == [True if why else None]
    assert why in "".join(one.why for one in found)
    assert len(found) == bool(why)


def test_memory_that_the_policy_does_not_bind_any_more() -> None:
    pods = [pod("a", "2")]
    before = planned(pods, memory={"policy": "Static"})
    _, (found,) = mark_outdated(resolve(TWO_NUMA_NODES, policy()), before, pods, edited=True)
    assert found.why == "has memory bound"
    assert (found.namespace, found.pod, found.container) == ("default", "a", "c0")


def test_a_mark_goes_when_its_cause_does_and_costs_nothing_otherwise() -> None:
    pods = [pod("a", "2")]
    before = planned(pods)
    narrow = resolve(TWO_NUMA_NODES, policy(pods={"qosClasses": ["Burstable"]}))
    marked, _ = mark_outdated(narrow, before, pods, edited=False)
    assert marked.containers[0].outdated
    again, found = mark_outdated(resolve(TWO_NUMA_NODES, policy()), marked, pods, edited=False)
    assert (again, found) == (before, ())
    strict = resolve(TWO_NUMA_NODES, policy(options={"fullPCPUsOnly": True}))
    odd = planned([pod("b", "3")])
    assert mark_outdated(strict, odd, [pod("b", "3")], edited=False) == (odd, ())


def test_what_is_known_of_a_pod_that_is_gone_stays() -> None:
    before = planned([pod("a", "3")])
    strict = resolve(TWO_NUMA_NODES, policy(options={"fullPCPUsOnly": True}))
    marked, _ = mark_outdated(strict, before, [pod("a", "3")], edited=True)
    assert mark_outdated(resolve(TWO_NUMA_NODES, policy()), marked, [], edited=True) == (marked, ())


def container(name: str, cpus: int, memory: str = "64Mi") -> dict[str, Any]:
    amounts = {"cpu": str(cpus), "memory": memory}
    return {"name": name, "resources": {"requests": amounts, "limits": amounts}}


def sizes(*numa_nodes: int, memory: dict[int, int]) -> Topology:
    """NUMA nodes of one socket, of so many CPUs each; two threads on each core."""
    nodes = [node for node, cpus in enumerate(numa_nodes) for _ in range(cpus)]
    return Topology(
        cpus=tuple(Cpu(cpu, cpu & ~1, 0, NO_CACHE, node) for cpu, node in enumerate(nodes)),
        numa_nodes=tuple(NumaNode(node, each << 20) for node, each in memory.items()),
    )


def test_a_container_that_reuses_no_cpu_of_an_init_container() -> None:
    """It would on a node with nothing else free: the number of each one's CPUs counts."""
    topology = sizes(8, 2, 4, memory={0: 64, 1: 64, 2: 64})
    resolved = resolve(topology, policy(reserved={"count": 2}, topology={"scope": "Pod"}))
    first = parse_pod(pod_body("a", [container("c0", 1)]))
    second = parse_pod(pod_body("b", [container("c0", 4)], [container("i0", 1)]))
    before = plan_with(resolved, None, [first, second], NO_UIDS).spec
    assert [str(one.cpus) for one in before.containers] == ["10", "11", "0-1,12-13"]
    assert mark_outdated(resolved, before, [first, second], edited=True) == (before, ())


def test_with_scope_pod_the_pod_is_judged_and_not_each_container_alone() -> None:
    """Alone, the second one would be refused: no CPU is on the NUMA node of its memory."""
    topology = sizes(2, 2, 0, memory={0: 32, 1: 96, 2: 3104})
    together = policy(
        reserved={"count": 1},
        topology={"policy": "Restricted", "scope": "Pod"},
        memory={"policy": "SingleNUMA", "nodesWithoutCPUs": "Any"},
    )
    one = parse_pod(pod_body("a", [container("c0", 1), container("c1", 1, "3Gi")]))
    resolved = resolve(topology, together)
    before = plan_with(resolved, None, [one], NO_UIDS).spec
    assert [str(one.mems) for one in before.containers] == ["1", "2"]
    assert mark_outdated(resolved, before, [one], edited=True) == (before, ())


@pytest.mark.parametrize(
    ("topology", "options", "sizes", "kept"),
    [
        (machine(8, numa_nodes=2), {}, (("2", "3"), ("500m", "3")), "1,4-5"),
        (
            machine(6, numa_nodes=3),
            {"distributeCPUsAcrossNUMA": True},
            (("3", "2"), ("500m", "2")),
            "1,5",
        ),
    ],
)
def test_what_a_pod_keeps_whose_other_container_gave_all_its_cpus_back(
    topology: Topology, options: dict[str, Any], sizes: tuple[tuple[str, str], ...], kept: str
) -> None:
    """With scope `Pod` both were aligned together: those that stay may be on more NUMA nodes."""
    together = policy(options=options, topology={"policy": "Restricted", "scope": "Pod"})
    resolved, spec = resolve(topology, together), None
    for cpus in sizes:
        pods = [granted_pod("p", *((each, "64Mi") for each in cpus))]
        spec = plan_with(resolved, spec, pods, NO_UIDS).spec
    assert spec is not None
    assert [(one.container, str(one.cpus)) for one in spec.containers] == [("c1", kept)]
    assert mark_outdated(resolved, spec, pods, edited=True) == (spec, ())


def test_memory_beside_others_that_had_bound_numa_nodes_together() -> None:
    """As with the kubelet; on an empty node its Memory Manager would refuse the second pod."""
    topology = sizes(2, 4, 0, memory={0: 192, 1: 2176, 2: 4096})
    edited = policy(
        reserved={"cpus": "5"},
        topology={"policy": "BestEffort", "scope": "Pod"},
        memory={"policy": "Static"},
    )
    static = resolve(topology, edited)
    small = [parse_pod(pod_body(name, [container("c0", 1)])) for name in ("x", "y")]
    large = [
        parse_pod(pod_body("a", [container("c0", 1, "3Gi")])),
        parse_pod(pod_body("b", [container("c0", 1), container("c1", 1, "3Gi")])),
    ]
    before = plan_with(static, None, [*small, *large], NO_UIDS).spec
    assert [str(one.mems) for one in before.containers] == ["0", "0", "1-2", "1-2", "1-2"]
    later = plan_with(static, before, large[1:], NO_UIDS).spec
    assert mark_outdated(static, later, large[1:], edited=True) == (later, ())


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        pytest.param({"policy": "SingleNUMA"}, "NotEnoughMemory", id="one-numa-node"),
        pytest.param(
            {"policy": "Static", "reserved": [{"numaNode": 2, "memory": "3Gi"}]},
            "NotEnoughMemory",
            id="less-to-bind",
        ),
        pytest.param({"policy": "Static"}, "", id="no-edit"),
    ],
)
def test_memory_of_two_numa_nodes_under_an_edited_policy(edit: dict[str, Any], why: str) -> None:
    topology = sizes(8, 8, 8, memory={0: 192, 1: 2176, 2: 4096})
    pods = [parse_pod(pod_body("a", [container("c0", 1, "5Gi")]))]
    before = plan_with(resolve(topology, policy(memory={"policy": "Static"})), None, pods, NO_UIDS)
    after = resolve(topology, policy(memory=edit))
    _, found = mark_outdated(after, before.spec, pods, edited=True)
    assert len(found) == bool(why)
    assert why in "".join(one.why for one in found)


def pod_body(name: str, containers: list[Any], first: list[Any] | None = None) -> dict[str, Any]:
    spec = {"initContainers": first or [], "containers": containers}
    return {"metadata": {"name": name, "uid": name}, "spec": spec}


@given(situations(), st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_a_policy_places_is_not_outdated_under_it(situation: Situation, data: Any) -> None:
    """Whatever else was there when a container was placed, and whatever has ended since.

    Parts of cores under `fullPCPUsOnly` are the exception.
    """
    topology, spec, objects = situation
    pods = [parse_pod(each) for each in objects]
    try:
        resolved = resolve(topology, spec)
        plan = plan_with(resolved, None, pods, NO_UIDS)
        left = [one for one in pods if data.draw(st.booleans())]
        later = plan_with(resolved, plan.spec, left, NO_UIDS)
    except PolicyError:
        return
    spec_then, found = mark_outdated(resolved, later.spec, left, edited=True)
    marked = [one for one in spec_then.containers if one.outdated]
    assert len(marked) == len(found)
    if spec.options.full_pcpus_only:
        marked = [one for one in marked if not splits_a_core(topology, one.cpus)]
    assert marked == []


def splits_a_core(topology: Topology, cpus: CpuSet) -> bool:
    return any(cpus & core not in {CpuSet(), core} for core in topology.core_cpus.values())
