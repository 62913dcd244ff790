"""Pods stay while the machine under them changes: a firmware setting, a resized VM, lost memory.

Or they may use a part of the machine, by the cgroups above them.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.hardware.layout import layout_digest
from numapin_api.schema.plain_assignment import Moving, NodeAssignmentSpec
from numapin_api.topology import NumaNode, Topology
from numapin_enforcer.assignment.decode import decode_spec
from numapin_enforcer.assignment.validation import find_problems
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    PodView,
    PolicyError,
    SystemReservation,
    plan_node,
    reserved_offline,
    resolve,
    with_reserved,
)
from support.values.placement import GIB, NO_UIDS, history, machine, pod, policy
from support.values.situations import machines, pod_objects, policies

ONE_NUMA_NODE = machine(16, 1)
TWO_SMALLER = machine(16, 1, 2, 8 * GIB)


def bound(spec: NodeAssignmentSpec) -> dict[str, str]:
    return {one.pod: str(one.mems) for one in spec.containers}


def promised_within(topology: Topology, spec: NodeAssignmentSpec) -> bool:
    """Whether each NUMA node, and all those that are bound together, have what is bound there."""
    has = {one.id: one for one in topology.numa_nodes}
    for resource in {block.resource for one in spec.containers for block in one.memory}:
        blocks = [b for one in spec.containers for b in one.memory if b.resource == resource]
        for group in {block.numa_nodes for block in blocks}:
            inside = sum(b.bytes for b in blocks if set(b.numa_nodes) <= set(group))
            if inside > sum(_size(has[one], resource) for one in group):
                return False
    return True


def _size(numa_node: NumaNode, resource: str) -> int:
    huge = {name: pages * (2 << 20) for name, pages in numa_node.hugepages.items()}
    if resource == "memory":
        return numa_node.memory_bytes - sum(huge.values())
    return huge.get(resource.removeprefix("hugepages-"), 0)


def test_no_more_is_bound_than_a_numa_node_has() -> None:
    memory = policy(memory={"policy": "SingleNUMA"}, topology={"policy": "SingleNUMANode"})
    pods = [pod("a", "2", memory="1Gi"), pod("b", "6", memory="7Gi"), pod("c", "4", memory="4Gi")]
    before = history(ONE_NUMA_NODE, memory, pods)
    after = plan_node(TWO_SMALLER, memory, before, pods, NO_UIDS).spec
    assert bound(before) == {"a": "0", "b": "0", "c": "0"}
    assert bound(after) == {"a": "0", "b": "0", "c": ""}, "the youngest is bound no longer"
    assert [one.cpus for one in after.containers] == [one.cpus for one in before.containers]
    assert [one.outdated for one in after.containers] == [None, None, True]


@pytest.mark.parametrize("kind", ["Static", "Preferred", "SingleNUMA"])
def test_a_numa_node_that_is_gone_ends_no_plan(kind: str) -> None:
    memory = policy(memory={"policy": kind}, topology={"policy": "BestEffort"})
    wide = pod("wide", "2", memory="6Gi" if kind != "SingleNUMA" else "3Gi")
    before = history(machine(8, 1, 2, 4 * GIB), memory, [wide])
    less = machine(8, 1, 1, 8 * GIB)
    after = plan_node(less, memory, before, [wide, pod("new", "1", memory="1Gi")], NO_UIDS).spec
    assert {one.pod for one in after.containers} == {"wide", "new"}
    assert promised_within(less, after)
    assert after == plan_node(less, memory, after, [wide, pod("new", "1")], NO_UIDS).spec


def test_memory_bound_to_several_numa_nodes_stays_on_those_that_are_left() -> None:
    memory = policy(memory={"policy": "Static"}, topology={"policy": "BestEffort"})
    wide = pod("wide", "2", memory="6Gi")
    before = history(machine(8, 1, 2, 4 * GIB), memory, [wide])
    after = plan_node(machine(8, 1, 1, 8 * GIB), memory, before, [wide], NO_UIDS).spec
    assert (bound(before), bound(after)) == ({"wide": "0-1"}, {"wide": "0"})


def test_huge_pages_of_a_size_that_is_gone_are_not_bound() -> None:
    memory = policy(memory={"policy": "Static"})
    huge = pod("huge", "2", memory="64Mi")
    [asked] = huge.containers
    more = (("hugepages-2Mi", 32 << 20), *asked.memory)
    huge = replace(huge, containers=(replace(asked, memory=more),))
    [numa_node] = ONE_NUMA_NODE.numa_nodes
    pages = replace(ONE_NUMA_NODE, numa_nodes=(replace(numa_node, hugepages={"2Mi": 64}),))
    before = history(pages, memory, [huge])
    after = plan_node(ONE_NUMA_NODE, memory, before, [huge], NO_UIDS).spec
    assert (len(before.containers[0].memory), after.containers[0].memory) == (2, ())


def test_a_move_to_a_numa_node_that_is_gone_waits_for_no_memory_there() -> None:
    memory = policy(mode="Dynamic", memory={"policy": "SingleNUMA"})
    a = pod("a", "2", memory="1Gi")
    [entry] = history(machine(8, 1, 2), memory, [a]).containers
    moving = Moving(leaving=entry.cpus, leaving_mems=entry.mems)
    cpus = entry.cpus | CpuSet.parse("4-5")
    away = replace(entry, cpus=cpus, moving=moving, mems=entry.mems)
    before = NodeAssignmentSpec(mode="Dynamic", containers=(away,))
    other = replace(machine(8, 1, 2), numa_nodes=(NumaNode(1, 16 * GIB),))
    [after] = plan_node(other, memory, before, [a], NO_UIDS).spec.containers
    assert after.moving is not None
    assert not after.moving.leaving_mems
    assert not after.mems


def test_the_digest_is_of_the_layout_alone() -> None:
    assert layout_digest(machine(8, 1, 2)) == layout_digest(machine(8, 1, 2, 4 * GIB))
    others = (machine(8, 2, 2), machine(8, 1, 1), machine(4, 1, 2))
    assert len({layout_digest(one) for one in (machine(8, 1, 2), *others)}) == 4


Moment = tuple[Topology, CpuPolicySpec, list[PodView]]


@st.composite
def moments(draw: st.DrawFn, objects: list[dict[str, Any]]) -> Moment:
    """A machine, a policy, and some of the pods."""
    topology = draw(machines())
    pods = [parse_pod(one) for one in objects if draw(st.booleans())]
    return topology, draw(policies(topology)), pods


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_machine_may_follow_another(data: st.DataObject) -> None:
    objects, spec = data.draw(pod_objects()), None
    for _ in range(4):
        topology, policy, pods = data.draw(moments(objects))
        try:
            made = plan_node(topology, policy, spec, pods, NO_UIDS).spec
        except PolicyError:
            continue
        assert made == plan_node(topology, policy, spec, pods, NO_UIDS).spec
        assert not find_problems(decode_spec(made.to_wire()), topology, "n", "n")
        assert promised_within(topology, made)
        spec = made


def part(topology: Topology, cpus: str) -> Topology:
    """The machine where pods may use these CPUs alone."""
    left = tuple(cpu for cpu in topology.cpus if cpu.id in CpuSet.parse(cpus))
    return replace(topology, cpus=left, withheld=topology.online - CpuSet.parse(cpus))


HALF = part(machine(16, 1), "8-15")


@pytest.mark.parametrize(
    ("named", "reserved", "shared"),
    [("0-1", "", "8-15"), ("0,8", "8", "8-15"), ("8-9", "8-9", "8-15")],
)
def test_reserved_cpus_that_pods_may_not_use_are_reserved_already(
    named: str, reserved: str, shared: str
) -> None:
    spec = plan_node(HALF, policy(reserved={"cpus": named}), None, [], NO_UIDS).spec
    assert spec.pools is not None
    assert (str(spec.pools.reserved), str(spec.pools.shared)) == (reserved, shared)
    assert not reserved_offline(policy(reserved={"cpus": named}), HALF)
    assert not find_problems(decode_spec(spec.to_wire()), HALF, "n", "n")


def test_a_reserved_cpu_that_the_machine_does_not_have_is_refused() -> None:
    with pytest.raises(PolicyError, match="no online CPU 16; it has 8-15"):
        resolve(HALF, policy(reserved={"cpus": "0,16"}))


@pytest.mark.parametrize(("kept_back", "count"), [(8000, 1), (9500, 2), (1000, 1), (0, 1)])
def test_cpus_that_pods_may_not_use_are_part_of_what_the_node_keeps_back(
    kept_back: int, count: int
) -> None:
    made = with_reserved(CpuPolicySpec(), HALF, SystemReservation(kept_back))
    assert made.reserved.count == count


def test_pods_get_cpus_of_the_part_alone() -> None:
    spec = history(HALF, policy(), [pod("a", "3"), pod("b", "5")])
    assert [(one.pod, str(one.cpus)) for one in spec.containers] == [("a", "8-10")]
    assert [one.pod for one in spec.refused] == ["b"]


def test_a_container_gets_others_for_cpus_that_an_administrator_takes() -> None:
    pods = [pod("a", "2"), pod("b", "2")]
    before = history(machine(16, 1), policy(), pods)
    assert [str(one.cpus) for one in before.containers] == ["1-2", "3-4"]
    after = plan_node(part(machine(16, 1), "2-15"), policy(), before, pods, NO_UIDS).spec
    given = [one.cpus for one in after.containers]
    assert all(cpus <= CpuSet.parse("2-15") for cpus in given)
    assert CpuSet.parse("3-4") in given


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_part_can_be_enforced(data: st.DataObject) -> None:
    whole, objects, spec = data.draw(machines()), data.draw(pod_objects()), None
    pods, rules = [parse_pod(one) for one in objects], data.draw(policies(whole))
    for _ in range(3):
        left = data.draw(st.sets(st.sampled_from(sorted(whole.online)), min_size=1))
        topology = part(whole, str(CpuSet(left)))
        try:
            spec = plan_node(topology, rules, spec, pods, NO_UIDS).spec
        except PolicyError:
            continue
        assert not find_problems(decode_spec(spec.to_wire()), topology, "n", "n")
