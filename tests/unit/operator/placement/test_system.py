from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.nodeassignment import MAX_CONFINED
from numapin_api.schema.plain_assignment import (
    Cache,
    CacheClasses,
    ExclusiveClass,
    NodeAssignmentSpec,
    System,
)
from numapin_operator.placement import PodView
from numapin_operator.placement.assignment.system import cache_of, system_of
from numapin_operator.placement.plan import plan_node
from numapin_operator.policies.selection import mark_selected
from support.values.operator import pod_view
from support.values.placement import machine


def test_an_assignment_has_what_the_policy_asks() -> None:
    asked = CpuPolicySpec.model_validate({"system": {"processes": "KeepOff"}})
    assert system_of(asked.system) == System(processes="KeepOff")


@pytest.mark.parametrize("spec", [{}, {"system": {}}, {"system": {"processes": "Leave"}}], ids=str)
def test_an_older_enforcer_hears_nothing_of_what_nobody_asks(spec: dict[str, Any]) -> None:
    assert system_of(CpuPolicySpec.model_validate(spec).system) is None


@pytest.mark.parametrize(
    "spec", [{}, {"cache": {}}, {"cache": {"classes": {"others": {}}}}], ids=str
)
def test_caches_are_left_alone_where_nobody_asks(spec: dict[str, Any]) -> None:
    assert cache_of(CpuPolicySpec.model_validate(spec).cache) is None


def test_an_assignment_has_the_shares_of_the_policy() -> None:
    classes = {"classes": {"exclusive": {"l3Percent": 40}}}
    asked = CpuPolicySpec.model_validate({"cache": classes})
    assert cache_of(asked.cache) == Cache(CacheClasses(ExclusiveClass(l3_percent=40)))
    assert Cache.from_wire(classes) == cache_of(asked.cache)


CONFINING = CpuPolicySpec.model_validate(
    {"reserved": {"count": 1}, "pods": {"confinedNamespaces": ["kube-system"]}}
)


def planned(
    *pods: PodView,
    previous: NodeAssignmentSpec | None = None,
    running: frozenset[str] = frozenset(),
) -> NodeAssignmentSpec:
    marked = mark_selected(CONFINING.pods, pods, {})
    return plan_node(machine(8), CONFINING, previous, marked, running).spec


def test_pods_of_confined_namespaces_are_named_and_get_nothing_exclusive() -> None:
    ours = pod_view("a", "2", namespace="kube-system")
    others = pod_view("b", "2", namespace="team")
    spec = planned(others, ours)
    assert spec.confined == (ours.uid,)
    assert [one.pod for one in spec.containers] == ["b"]
    assert NodeAssignmentSpec.from_wire(spec.to_wire()) == spec


def test_an_assignment_without_confined_pods_says_nothing_of_them() -> None:
    spec = planned(pod_view("b", "2", namespace="team"))
    assert spec.confined is None
    assert "confined" not in spec.to_wire()


def test_a_pod_that_had_cpus_before_its_namespace_was_confined_keeps_them() -> None:
    pod = pod_view("a", "2", namespace="kube-system")
    before = plan_node(machine(8), CpuPolicySpec(), None, (pod,), frozenset()).spec
    spec = planned(pod, previous=before, running=frozenset({pod.uid}))
    assert spec.confined is None
    assert [one.cpus for one in spec.containers] == [one.cpus for one in before.containers]


def test_pods_are_confined_until_they_are_gone() -> None:
    pod = replace(pod_view("a", namespace="kube-system"), terminal=True)
    assert planned(pod, running=frozenset({pod.uid})).confined == (pod.uid,)
    assert planned(pod).confined is None


def test_as_many_pods_are_confined_as_a_spec_has_room_for() -> None:
    pods = [pod_view(f"p{number}", namespace="kube-system") for number in range(MAX_CONFINED + 9)]
    assert len(planned(*pods).confined or ()) == MAX_CONFINED
