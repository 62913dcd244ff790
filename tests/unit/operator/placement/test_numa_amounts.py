"""What each NUMA node has left is what the next pod can get, no more and no less."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet, MemSet
from numapin_api.schema.plain_assignment import (
    ContainerAssignment,
    MemoryBlock,
    Moving,
    NodeAssignmentSpec,
)
from numapin_api.topology import NumaNode, Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    CPU,
    MEMORY,
    Amount,
    Node,
    PodView,
    PolicyError,
    numa_amounts,
    plan_with,
    present_node,
    promised_amounts,
    resolve,
)
from support.values.placement import GIB, NO_UIDS, machine, pod, policy
from support.values.situations import Situation, situations

MIB = 1 << 20
TWO_NODES = machine(8, threads=2, numa_nodes=2, memory_bytes=4 * GIB)


def amounts_after(
    topology: Topology, spec: CpuPolicySpec, *pods: PodView
) -> dict[int, dict[str, Amount]]:
    resolved = resolve(topology, spec)
    made = plan_with(resolved, None, pods, NO_UIDS).spec
    found = numa_amounts(present_node(resolved, made, pods, NO_UIDS))
    return {numa_node: dict(at) for numa_node, at in found.items()}


def test_cpus_memory_and_huge_pages_of_each_numa_node() -> None:
    topology = replace(
        TWO_NODES,
        numa_nodes=(NumaNode(0, 4 * GIB, {"2Mi": 512}), NumaNode(1, 4 * GIB, {"2Mi": 0})),
    )
    spec = policy(
        topology={"policy": "SingleNUMANode"},
        memory={"policy": "Static", "reserved": [{"numaNode": 0, "memory": "1Gi"}]},
    )
    first = pod("a", "2", memory="1Gi")
    assert amounts_after(topology, spec, first) == {
        0: {
            CPU: Amount(4, 3, 1),
            MEMORY: Amount(3 * GIB, 2 * GIB, GIB),
            "hugepages-2Mi": Amount(GIB, GIB, GIB),
        },
        1: {
            CPU: Amount(4, 4, 4),
            MEMORY: Amount(4 * GIB, 4 * GIB, 4 * GIB),
            "hugepages-2Mi": Amount(0, 0, 0),
        },
    }


def test_memory_that_is_not_bound_is_available_as_a_whole() -> None:
    has = amounts_after(TWO_NODES, policy(), pod("a", "2", memory="1Gi"))
    assert [at[MEMORY] for at in has.values()] == [Amount(4 * GIB, 4 * GIB, 4 * GIB)] * 2


def test_a_thread_without_its_free_core_cannot_be_given_out() -> None:
    """CPU 0 is reserved, and so its sibling is in no whole core that is free."""
    has = amounts_after(TWO_NODES, policy(options={"fullPCPUsOnly": True}))
    assert [at[CPU] for at in has.values()] == [Amount(4, 2, 2), Amount(4, 4, 4)]


def test_the_last_cpu_of_the_shared_pool_is_not_available() -> None:
    one = machine(4, threads=1, numa_nodes=1)
    strict = policy(reserved={"cpus": "0", "strict": True})
    assert amounts_after(one, strict)[0][CPU] == Amount(4, 3, 2)


def test_what_a_pod_uses_that_shares_is_not_available() -> None:
    shares = replace(pod("beside", "500m", memory="1Gi"), selected=False)
    has = amounts_after(TWO_NODES, policy(memory={"policy": "Static"}), shares)
    left = [at[MEMORY].available for at in has.values()]
    assert sum(left) == 7 * GIB


@pytest.mark.parametrize("aligned", ["SingleNUMANode", "Restricted"])
def test_memory_beside_containers_of_several_numa_nodes_is_for_their_like(aligned: str) -> None:
    spec = policy(topology={"policy": aligned}, memory={"policy": "Static"})
    entry = ContainerAssignment(
        pod_uid="u", namespace="default", pod="p", container="c", exclusive=True,
        cpus=CpuSet.parse("1,4"), mems=MemSet.parse("0-1"),
        memory=(MemoryBlock(numa_nodes=(0, 1), resource=MEMORY, bytes=5 * GIB),),
    )  # fmt: skip
    before = NodeAssignmentSpec(containers=(entry,))
    has = numa_amounts(present_node(resolve(TWO_NODES, spec), before, (), NO_UIDS))
    left = [at[MEMORY].available for at in has.values()]
    assert left == ([0, 0] if aligned == "SingleNUMANode" else [0, 3 * GIB])


def test_what_is_not_bound_or_not_there_is_not_promised() -> None:
    gpu = NumaNode(2, 96 * GIB, on_device=True)
    topology = replace(TWO_NODES, numa_nodes=(*TWO_NODES.numa_nodes, gpu))
    promised = [
        promised_amounts(Node(resolve(topology, policy(memory={"policy": name}))))
        for name in ("None", "Static")
    ]
    assert [[*each.items()] for each in promised[0].values()] == [
        [(CPU, Amount(4, 3, 3))],
        [(CPU, Amount(4, 4, 4))],
        [],
    ]
    assert [sorted(each) for each in promised[1].values()] == [[CPU, MEMORY], [CPU, MEMORY], []]


@pytest.mark.parametrize("claimed", [None, True], ids=["moving", "claimed"])
def test_cpus_that_leave_a_container_or_are_a_drivers_are_not_available(
    claimed: bool | None,
) -> None:
    entry = ContainerAssignment(
        pod_uid="u", namespace="default", pod="p", container="c", exclusive=True,
        cpus=CpuSet.parse("4-5"), claimed=claimed,
    )  # fmt: skip
    if not claimed:
        entry = replace(entry, moving=Moving(leaving=CpuSet.parse("1")))
    spec = NodeAssignmentSpec(containers=(entry,))
    found = numa_amounts(present_node(resolve(TWO_NODES, policy()), spec, (), NO_UIDS))
    expected = [3, 2] if claimed else [2, 2]
    assert [at[CPU].available for at in found.values()] == expected


@given(situations(), st.data())
@settings(max_examples=300, deadline=None)
def test_a_pod_is_placed_if_and_only_if_a_numa_node_has_enough(
    situation: Situation, data: st.DataObject
) -> None:
    topology, drawn, objects = situation
    memory = data.draw(st.sampled_from(["Static", "SingleNUMA"]))
    spec = drawn.model_copy(
        update={
            "topology": drawn.topology.model_copy(update={"policy": "SingleNUMANode"}),
            "memory": drawn.memory.model_copy(update={"policy": memory}),
        }
    )
    try:
        resolved = resolve(topology, spec)
    except PolicyError:
        return
    pods = [parse_pod(each) for each in objects]
    before = plan_with(resolved, None, pods, NO_UIDS)
    if before.waiting:
        return
    has = numa_amounts(present_node(resolved, before.spec, pods, NO_UIDS))
    count = data.draw(st.sampled_from([2, 4, 6]))
    size = data.draw(st.sampled_from([64, 512, 2048]))
    fits = any(
        at[CPU].available >= count and at[MEMORY].available >= size * MIB for at in has.values()
    )
    more = pod("more", str(count), memory=f"{size}Mi")
    after = plan_with(resolved, before.spec, [*pods, more], NO_UIDS).spec
    assert fits == any(one.pod == "more" for one in after.containers)
    for at in has.values():
        for amount in at.values():
            assert 0 <= amount.available <= amount.allocatable <= amount.capacity
