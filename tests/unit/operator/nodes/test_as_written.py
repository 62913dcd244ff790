"""A node whose own policy is not known any more: its settings stay, its pods are served."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_operator.nodes.decide import Write, decide
from numapin_operator.policies.in_force import as_written
from support.values.moves import MovingNode, fragmented_node
from support.values.operator import (
    assignment_view,
    enforcer_status,
    picture,
    pod_view,
    policy_view,
)
from support.values.placement import machine

OTHER = policy_view("other", {"mode": "Dynamic", "reserved": {"count": 5}, "cpuQuota": "Keep"})
MACHINE = replace(machine(16, numa_nodes=2), isolated=machine(16).online - machine(14).online)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"reserved": {"count": 3}},
        {"reserved": {"cpus": "0,8", "strict": True}},
        {"isolatedCPUs": "ExclusiveOnly"},
        {"mode": "Dynamic", "cpuQuota": "Keep"},
        {"system": {"processes": "KeepOff"}},
        {"cache": {"classes": {"others": {"memoryBandwidthPercent": 50}}}},
    ],
)
def test_the_settings_stay_and_new_pods_are_placed(spec: dict[str, Any]) -> None:
    policy, status = policy_view("gone", spec), enforcer_status(1, topology=MACHINE)
    first = decide(picture(assignment_view({}, status), pod_view("a"), policies=(policy,))).spec
    assert first is not None
    before = assignment_view(first.to_wire(), enforcer_status(2, topology=MACHINE), generation=2)
    kept = as_written(OTHER, before)
    assert decide(picture(before, pod_view("a"), policies=(kept,))).write is Write.NOTHING
    with_new = (before, pod_view("a"), pod_view("b", bound="2026-01-02T00:00:00Z"))
    after = decide(picture(*with_new, policies=(kept,))).spec
    assert after == decide(picture(*with_new, policies=(policy,))).spec
    assert after is not None
    assert [one.pod for one in after.containers] == ["a", "b"]


def _decide_as_written(node: MovingNode) -> None:
    given = node.picture()
    assert given.assignment is not None
    kept = as_written(policy_view("other", {"mode": "Static"}), given.assignment)
    decision = decide(replace(given, ranked=(kept,)))
    if decision.spec is not None:
        node.spec, node.generation = decision.spec.to_wire(), node.generation + 1


def test_a_move_comes_to_its_end() -> None:
    node = fragmented_node()
    node.decide()
    assert node.moving("small")
    for _ in range(4):
        node.report()
        node.wait(5)
        _decide_as_written(node)
    assert node.entry("small").moving is None
    assert str(node.entry("small").cpus) == "6"
    assert node.entry("demand")


def test_no_move_begins() -> None:
    node = fragmented_node()
    _decide_as_written(node)
    assert not any(one.get("moving") for one in node.spec["containers"])
