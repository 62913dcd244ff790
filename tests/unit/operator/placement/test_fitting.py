"""What a refusal says would have fitted: each number is true, and none is missing."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.cpuset import CpuSet
from numapin_api.schema.plain_assignment import Refusal
from numapin_api.topology import Topology
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    Node,
    PlacementError,
    PodView,
    PolicyError,
    plan_node,
    resolve,
)
from numapin_operator.placement.pods.fitting import MOST_TRIED_IN_PLAN
from numapin_operator.placement.requests import exclusive_cpus, least_pod_cpus, pod_cpus
from support.values.placement import GIB, NO_UIDS, machine, pod, policy
from support.values.situations import Situation, pod_objects, policies, situations

ISOLATED = [CpuSet(), CpuSet.parse("12-15"), CpuSet.parse("5,10-15")]
NUMBER = re.compile(r"up to (\d+) CPUs? would fit")


def refusals(topology: Topology, spec: CpuPolicySpec, pods: list[PodView]) -> tuple[Refusal, ...]:
    return plan_node(topology, spec, None, pods, NO_UIDS).spec.refused


def said(refusal: Refusal) -> int | None:
    found = NUMBER.search(refusal.message or "")
    return int(found.group(1)) if found else None


def smaller(view: PodView, container: str | None) -> dict[int, PodView]:
    """The pod with each smaller number of CPUs, all else as it is; empty if it is not clear."""
    if container is None and view.pod_level is not None:
        whole = view.pod_level
        return {
            count: replace(view, pod_level=replace(whole, cpu_millis=count * 1000))
            for count in range(least_pod_cpus(view), pod_cpus(view))
        }
    exclusive = [one for one in view.containers if exclusive_cpus(view, one)]
    chosen = [one for one in exclusive if container in (None, one.name)]
    if len(chosen) != 1:
        return {}
    return {
        count: replace(
            view,
            containers=tuple(
                replace(one, cpu_millis=count * 1000) if one is chosen[0] else one
                for one in view.containers
            ),
        )
        for count in range(1, exclusive_cpus(view, chosen[0]))
    }


def largest(
    topology: Topology, spec: CpuPolicySpec, pods: list[PodView], refusal: Refusal
) -> int | None:
    """Each smaller request in the refused pod's place, planned with everything else."""
    (view,) = (one for one in pods if one.uid == refusal.pod_uid)
    fitting = []
    for count, other in smaller(view, refusal.container).items():
        changed = [other if one is view else one for one in pods]
        if view.uid not in {one.pod_uid for one in refusals(topology, spec, changed)}:
            fitting.append(count)
    return max(fitting, default=None)


def with_more(objects: list[dict[str, Any]], cpus: list[int]) -> list[PodView]:
    """The pods, each followed by one that asks for many CPUs."""
    views = []
    for one, count in zip(map(parse_pod, objects), cpus, strict=False):
        views += [one, pod(f"large-{one.name}", str(count), memory="256Mi")]
    return views


def true_messages(situation: Situation, cpus: list[int]) -> list[str]:
    """The messages of all refusals, each of which says the largest number that fits."""
    topology, spec, objects = situation
    pods = with_more(objects, cpus)
    try:
        refused = refusals(topology, spec, pods)
    except PolicyError:
        return []
    for one in refused:
        assert said(one) == largest(topology, spec, pods, one), one.message
    return [one.message or "" for one in refused]


@given(situations(), st.lists(st.integers(2, 20), min_size=5, max_size=5))
@settings(max_examples=150, deadline=None)
def test_each_number_is_the_largest_that_fits(situation: Situation, cpus: list[int]) -> None:
    for message in true_messages(situation, cpus):
        assert "no CPU would fit" not in message


@given(situations(hybrid=True), st.lists(st.integers(2, 12), min_size=5, max_size=5))
@settings(max_examples=60, deadline=None)
def test_so_it_is_on_hybrid_machines(situation: Situation, cpus: list[int]) -> None:
    true_messages(situation, cpus)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_so_it_is_by_socket_and_with_cpus_that_are_never_shared(data: st.DataObject) -> None:
    topology = machine(16, threads=2, numa_nodes=4, memory_bytes=GIB)
    topology = replace(topology, isolated=data.draw(st.sampled_from(ISOLATED)))
    fields = {
        "options": data.draw(st.sampled_from([{"alignBySocket": True}, {"fullPCPUsOnly": True}])),
        "topology": {"policy": data.draw(st.sampled_from(["BestEffort", "Restricted"]))},
        "isolatedCPUs": data.draw(st.sampled_from(["Ignore", "ExclusiveOnly"])),
    }
    spec = CpuPolicySpec.model_validate(data.draw(policies(topology)).to_wire() | fields)
    numbers = st.lists(st.integers(2, 16), min_size=5, max_size=5)
    pods = with_more(data.draw(pod_objects()), data.draw(numbers))
    for one in refusals(topology, spec, pods):
        assert said(one) == largest(topology, spec, pods, one), one.message


SCRIPTED = [
    pytest.param(
        policy(reserved={"cpus": "0", "strict": True}), "8", "64Mi", 6, id="strictly-reserved"
    ),
    pytest.param(policy(options={"fullPCPUsOnly": True}), "7", "64Mi", 6, id="whole-cores"),
    pytest.param(policy(topology={"policy": "SingleNUMANode"}), "6", "64Mi", 4, id="one-numa-node"),
    pytest.param(policy(memory={"policy": "SingleNUMA"}), "8", "3Gi", None, id="memory-is-short"),
    pytest.param(policy(), "20", "64Mi", 7, id="too-many"),
]


@pytest.mark.parametrize(("spec", "cpus", "memory", "fits"), SCRIPTED)
def test_examples(spec: CpuPolicySpec, cpus: str, memory: str, fits: int | None) -> None:
    topology = machine(8, threads=2, numa_nodes=2, memory_bytes=2 * GIB)
    (refused,) = refusals(topology, spec, [pod("a", cpus, memory=memory)])
    assert said(refused) == fits, refused.message


def test_the_node_is_as_before() -> None:
    node = Node(resolve(machine(8, threads=2, numa_nodes=2), policy(memory={"policy": "Static"})))
    assert node.memory is not None
    before = node.cpus.free, node.cpus.shared, {k: dict(v) for k, v in node.memory.free.items()}
    with pytest.raises(PlacementError, match="up to 7 CPUs would fit"):
        node.place(pod("a", "9"))
    assert (node.cpus.free, node.cpus.shared, node.memory.free) == before
    assert not node.allocations


def test_a_storm_of_refusals_tries_no_more_than_a_plan_may() -> None:
    """More refusals say nothing of what would fit; those before them are true."""
    topology = machine(16, threads=1, numa_nodes=2, memory_bytes=2 * GIB)
    count = MOST_TRIED_IN_PLAN + 10
    pods = [pod(f"p{n:03}", "16") for n in range(count)]
    numbers = [said(one) for one in refusals(topology, policy(), pods)]
    assert numbers == [15] * MOST_TRIED_IN_PLAN + [None] * (count - MOST_TRIED_IN_PLAN)


def test_numbers_that_need_too_many_numa_nodes_are_skipped_together() -> None:
    """The pod's memory is on one NUMA node, and so must its CPUs be: 167 numbers do not fit."""
    aligned = policy(topology={"policy": "Restricted"}, memory={"policy": "Static"})
    topology = machine(448, threads=2, numa_nodes=8, memory_bytes=64 * GIB)
    first = [pod(f"f{n}", "56", memory="1Gi") for n in range(4)]
    refused = refusals(topology, aligned, [*first, pod("large", "336", memory="1Gi")])
    assert [said(one) for one in refused] == [56]
