"""Laws that every plan obeys, on random machines and pods."""

import json
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.topology import Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    Node,
    PlacementError,
    PodAllocation,
    PodView,
    PolicyError,
    plan_node,
    resolve,
)
from numapin_operator.placement.requests import pod_memory
from support.values.placement import NO_UIDS
from support.values.situations import Situation, situations


def placed(topology: Topology, policy: CpuPolicySpec, pods: Sequence[PodView]) -> Node | None:
    """A node with as many of the pods as fit; None where the policy cannot work there."""
    try:
        node = Node(resolve(topology, policy))
    except PolicyError:
        return None
    for pod in pods:
        try:
            node.place(pod)
        except PlacementError:
            continue
    return node


def own(allocation: PodAllocation) -> CpuSet:
    return CpuSet.from_mask(allocation.cpus)


@given(situations())
@settings(max_examples=150, deadline=None)
def test_no_cpu_is_given_out_twice_or_lost(situation: Situation) -> None:
    topology, policy, objects = situation
    node = placed(topology, policy, [parse_pod(each) for each in objects])
    if node is None:
        return
    allocations = [own(allocation) for allocation in node.allocations.values()]
    for one, other in combinations(allocations, 2):
        assert one.isdisjoint(other)
    exclusive = CpuSet()
    for cpus in allocations:
        exclusive |= cpus
    reserved = CpuSet.from_mask(node.policy.reserved)
    assert exclusive.isdisjoint(reserved)
    assert exclusive.isdisjoint(node.shared)
    assert exclusive | node.shared | reserved == topology.online
    assert node.shared
    assert policy.reserved.strict == node.shared.isdisjoint(reserved)


@given(situations())
@settings(max_examples=150, deadline=None)
def test_containers_of_a_pod_share_only_what_an_init_container_leaves(situation: Situation) -> None:
    topology, policy, objects = situation
    pods = {pod.uid: pod for pod in map(parse_pod, objects)}
    node = placed(topology, policy, list(pods.values()))
    for uid, allocation in node.allocations.items() if node else ():
        ordinary = {c.name for c in pods[uid].containers if c.kind.value == "init"}
        lasting = [b for b in allocation.containers if b.exclusive and b.name not in ordinary]
        for one, other in combinations(lasting, 2):
            assert not one.cpus & other.cpus
        for container in allocation.containers:
            wanted = next(c for c in pods[uid].containers if c.name == container.name)
            if container.exclusive and container.cpus:
                assert container.cpus.bit_count() == wanted.whole_cpus


@given(situations())
@settings(max_examples=150, deadline=None)
def test_release_undoes_place(situation: Situation) -> None:
    topology, policy, objects = situation
    pods = [parse_pod(each) for each in objects]
    node = placed(topology, policy, pods[:-1])
    if node is None:
        return
    shared = node.shared
    free = {name: sum(at.values()) for name, at in node.memory.free.items()} if node.memory else {}
    try:
        node.place(pods[-1])
        node.release(pods[-1].uid)
    except PlacementError:
        pass
    assert node.shared == shared
    if node.memory:
        assert {name: sum(at.values()) for name, at in node.memory.free.items()} == free


@given(situations())
@settings(max_examples=150, deadline=None)
def test_a_container_admitted_under_single_numa_node_lies_in_one(situation: Situation) -> None:
    """Except where scope Pod leaves memory out of the pod's request, as the kubelet does."""
    topology, policy, objects = situation
    single = policy.topology.model_copy(update={"policy": "SingleNUMANode"})
    policy = policy.model_copy(update={"topology": single})
    pods = {pod.uid: pod for pod in map(parse_pod, objects)}
    scope = policy.topology.scope
    node = placed(topology, policy, list(pods.values()))
    for uid, allocation in node.allocations.items() if node else ():
        for container in allocation.containers:
            if not container.cpus:
                continue
            inside = [cpus for cpus in topology.numa_cpus.values() if container.cpu_set <= cpus]
            assert len(inside) == 1
            counted = {name for name, _ in pod_memory(pods[uid])}
            complete = scope == "Container" or counted >= {b.resource for b in container.memory}
            binds = policy.memory.policy
            if container.memory and (binds == "SingleNUMA" or (binds == "Static" and complete)):
                assert len(container.mem_set) == 1
        if scope == "Pod" and pods[uid].pod_level is None:
            assert any(own(allocation) <= cpus for cpus in topology.numa_cpus.values())


@given(situations())
@settings(max_examples=100, deadline=None)
def test_planning_again_from_a_plan_changes_nothing(situation: Situation) -> None:
    topology, policy, objects = situation
    pods = [parse_pod(each) for each in objects]
    try:
        first = plan_node(topology, policy, None, pods, NO_UIDS).spec
    except PolicyError:
        return
    again = plan_node(topology, policy, None, pods, NO_UIDS).spec
    assert json.dumps(again.to_wire()) == json.dumps(first.to_wire())
    after_restart = plan_node(topology, policy, first, pods, NO_UIDS).spec
    assert json.dumps(after_restart.to_wire()) == json.dumps(first.to_wire())
    emptied = plan_node(topology, policy, first, [], NO_UIDS).spec
    assert emptied.pools == plan_node(topology, policy, None, [], NO_UIDS).spec.pools
    assert emptied.containers == ()


@given(situations(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_keys_never_matters(situation: Situation, random: Any) -> None:
    topology, policy, objects = situation

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = sorted(value)
            random.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(each) for each in value] if isinstance(value, list) else value

    wire = policy.to_wire()
    outcomes = []
    for mixed in (json.loads(json.dumps(objects)), shuffled(objects)):
        pods = [parse_pod(each) for each in mixed]
        try:
            spec = CpuPolicySpec.model_validate(shuffled(wire))
            planned = plan_node(topology, spec, None, pods, NO_UIDS).spec
            outcomes.append(json.dumps(planned.to_wire()))
        except PolicyError as refused:
            outcomes.append(str(refused))
    assert outcomes[0] == outcomes[1]


@given(situations(hybrid=True), st.data())
@settings(max_examples=200, deadline=None)
def test_whole_cores_are_whole_on_hybrid_processors_too(
    situation: Situation, data: st.DataObject
) -> None:
    """Also beside cores of which a thread is reserved, and where memory decides the NUMA node."""
    topology, policy, objects = situation
    if data.draw(st.booleans()):
        cpus = data.draw(st.sets(st.sampled_from(list(topology.online)), min_size=1))
        reserved = policy.reserved.model_copy(update={"count": None, "cpus": CpuSet(cpus)})
        policy = policy.model_copy(update={"reserved": reserved})
    options = policy.options.model_copy(
        update={"full_pcpus_only": True, "distribute_cpus_across_cores": False}
    )
    policy = policy.model_copy(update={"options": options})
    node = placed(topology, policy, [parse_pod(each) for each in objects])
    for allocation in node.allocations.values() if node else ():
        for container in allocation.containers if allocation.pod_level is None else ():
            for core in topology.core_cpus.values():
                assert core <= container.cpu_set or core.isdisjoint(container.cpu_set)


@given(situations())
@settings(max_examples=100, deadline=None)
def test_memory_is_never_promised_twice(situation: Situation) -> None:
    topology, policy, objects = situation
    node = placed(topology, policy, [parse_pod(each) for each in objects])
    if node is None or node.memory is None:
        return
    promised: dict[str, int] = {}
    for allocation in node.allocations.values():
        for block in allocation.memory:
            promised[block.resource] = promised.get(block.resource, 0) + block.size_bytes
    for resource, at in node.memory.free.items():
        assert all(size >= 0 for size in at.values())
        capacity = sum(node.policy.capacity[resource].values())
        assert promised.get(resource, 0) + sum(at.values()) == capacity
