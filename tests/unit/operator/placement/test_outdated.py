"""Which containers an edited policy would not place as they are."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numapin_api.nodeassignment import NodeAssignmentSpec
from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import PodView, PolicyError, mark_outdated, plan_with, resolve
from support.values.placement import NO_UIDS, machine, pod, policy
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


@given(situations(), st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_a_policy_places_is_not_outdated_under_it(situation: Situation, data: Any) -> None:
    """Whatever else was there when a container was placed, and whatever has ended since."""
    topology, spec, objects = situation
    pods = [parse_pod(each) for each in objects]
    try:
        resolved = resolve(topology, spec)
        plan = plan_with(resolved, None, pods, NO_UIDS)
        left = [one for one in pods if data.draw(st.booleans())]
        later = plan_with(resolved, plan.spec, left, NO_UIDS)
    except PolicyError:
        return
    assert mark_outdated(resolved, later.spec, left, edited=True) == (later.spec, ())
