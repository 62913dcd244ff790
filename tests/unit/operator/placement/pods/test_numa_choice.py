"""Who chooses which of several NUMA nodes a pod gets: the policy, or the pod if it may."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_operator.observe.pods.parser import parse_pod
from numapin_operator.placement import (
    Node,
    PodView,
    numa_preference,
    plan_node,
    resolve,
    why_preferred,
)
from support.values.placement import NO_UIDS, machine, pod, pod_body, policy

TWO = machine(cpus=8, numa_nodes=2)
SINGLE = {"topology": {"policy": "SingleNUMANode"}}


def prefers(numa_nodes: str, override: str = "Forbid") -> dict[str, Any]:
    return {"placement": {"numaNodes": numa_nodes, "podOverride": override}}


def choosing(text: str | None) -> PodView:
    return replace(pod("new", "2"), chosen=text or "")


@pytest.mark.parametrize(
    ("of_policy", "override", "text", "found", "said"),
    [
        pytest.param("None", "Forbid", None, None, "", id="nobody"),
        pytest.param("Packed", "Forbid", None, "Packed", "placement.numaNodes is Packed: of NUMA"),
        pytest.param("None", "Allow", "Spread", "Spread", "numa-nodes is Spread: of", id="the pod"),
        pytest.param("Packed", "Allow", "Spread", "Spread", "of which least is", id="it wins"),
        pytest.param("Packed", "Forbid", "Spread", "Packed", "podOverride is Forbid"),
        pytest.param("Packed", "Allow", "spread", "Packed", "'spread', not Packed or Spread: it"),
    ],
)
def test_the_pod_chooses_where_the_policy_allows_it(
    of_policy: str, override: str, text: str | None, found: str | None, said: str
) -> None:
    spec, asks = policy(**prefers(of_policy, override)), choosing(text)
    assert numa_preference(spec, asks) == found
    assert said in why_preferred(spec, asks)
    assert bool(said) == bool(why_preferred(spec, asks))


def test_the_annotation_of_a_pod_is_read() -> None:
    body = pod_body("p")
    for value, chosen in (("Spread", "Spread"), ("x" * 99, "x" * 64), (7, ""), ({}, "")):
        body["metadata"]["annotations"] = {"numapin.io/numa-nodes": value}
        assert parse_pod(body).chosen == chosen
    node = Node(resolve(TWO, policy(**SINGLE, **prefers("Packed", "Allow"))))
    node.place(pod("first", "2"))
    assert str(node.place(pod("packed", "1")).containers[0].cpu_set) == "1"
    assert str(node.place(choosing("Spread")).containers[0].cpu_set) == "4-5"


def test_a_choice_that_comes_later_moves_nothing() -> None:
    spec = policy(**SINGLE, **prefers("Packed", "Allow"))
    pods = [pod(f"p{number}", "2") for number in range(3)]
    before = plan_node(TWO, spec, None, pods, NO_UIDS).spec
    changed = [replace(one, chosen="Spread") for one in pods]
    assert plan_node(TWO, spec, before, changed, NO_UIDS).spec == before
