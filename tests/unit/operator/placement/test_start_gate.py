"""What an assignment says of the start gate: for which pods its enforcer waits, and which not."""

from dataclasses import replace
from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.schema.plain_assignment import LabelSelector, NodeAssignmentSpec, StartGate
from numapin_operator.placement import PodView
from numapin_operator.placement.plan import plan_node
from support.values.operator import pod_view
from support.values.placement import machine


def gate(
    milliseconds: int, selector: LabelSelector | None, classes: tuple[str, ...], *, memory: bool
) -> StartGate:
    return StartGate(
        timeout_milliseconds=milliseconds,
        pod_selector=selector,
        qos_classes=classes,
        memory=memory,
    )


def planned(policy: dict[str, Any], *pods: PodView) -> NodeAssignmentSpec:
    spec = CpuPolicySpec.model_validate({"reserved": {"count": 1}} | policy)
    return plan_node(machine(8), spec, None, pods, frozenset()).spec


def test_without_a_gate_an_assignment_says_nothing_of_it() -> None:
    spec = planned({}, replace(pod_view("a"), selected=False))
    assert (spec.start_gate, spec.unassigned) == (None, ())
    assert "startGate" not in spec.to_wire()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, gate(1000, None, ("Guaranteed",), memory=False)),
        ({"startTimeout": "250ms"}, gate(250, None, ("Guaranteed",), memory=False)),
        ({"startTimeout": "10us"}, gate(1, None, ("Guaranteed",), memory=False)),
        ({"startTimeout": "1h"}, gate(1500, None, ("Guaranteed",), memory=False)),
        ({"memory": {"policy": "Static"}}, gate(1000, None, ("Guaranteed",), memory=True)),
        (
            {"pods": {"podSelector": {"matchLabels": {"a": "b"}}, "qosClasses": ["Burstable"]}},
            gate(1000, LabelSelector({"a": "b"}, ()), ("Burstable",), memory=False),
        ),
    ],
)
def test_the_enforcer_knows_for_which_pods_it_waits(
    policy: dict[str, Any], expected: object
) -> None:
    spec = planned({"startGate": "Wait"} | policy)
    assert spec.start_gate == expected
    assert NodeAssignmentSpec.from_wire(spec.to_wire()) == spec


def test_pods_that_get_nothing_are_named() -> None:
    other = replace(pod_view("other"), selected=False)
    spec = planned({"startGate": "Wait"}, pod_view("placed"), other, pod_view("refused", "9"))
    assert [one.pod for one in spec.containers] == ["placed"]
    assert [one.pod for one in spec.refused] == ["refused"]
    assert spec.unassigned == (other.uid,)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"terminal": True}, id="it has ended"),
        pytest.param({"deleting": True}, id="it is deleted"),
        pytest.param({"qos": "Burstable"}, id="another class"),
        pytest.param({"claims_unknown": True}, id="its claims are not known yet"),
    ],
)
def test_pods_for_which_none_waits_are_not_named(change: dict[str, Any]) -> None:
    pod = replace(pod_view("other"), selected=False, **change)
    assert planned({"startGate": "Wait"}, pod).unassigned == ()


def test_pods_that_the_enforcer_tells_apart_by_labels_are_not_named() -> None:
    policy = {"startGate": "Wait", "pods": {"podSelector": {"matchLabels": {"a": "b"}}}}
    pods = [replace(pod_view(name), selected=False) for name in ("with", "without")]
    spec = planned(policy, replace(pods[0], labels={"a": "b"}), pods[1])
    assert spec.unassigned == (pods[0].uid,)
