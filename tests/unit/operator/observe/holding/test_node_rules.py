"""On which nodes a pod may run: selector, required affinity, tolerations."""

from typing import Any

import pytest

from numapin_operator.observe.holding.node_rules import REQUIRED, NodeRules, Taint, taints_of

LABELS = {"zone": "a", "cores": "8"}


def rules(spec: dict[str, Any]) -> NodeRules:
    terms = spec.pop("terms", None)
    if terms is not None:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return NodeRules.parse(spec)


def term(*expressions: tuple[str, str, list[str]], name: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {}
    if expressions:
        made["matchExpressions"] = [
            {"key": key, "operator": operator, "values": values}
            for key, operator, values in expressions
        ]
    if name:
        made["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    return made


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"nodeSelector": {"rack": ""}}, False),
        ({"terms": []}, False),
        ({"terms": [{}]}, False),
        ({"terms": [term(("zone", "In", ["b", "a"]))]}, True),
        ({"terms": [term(("zone", "In", ["b"])), term(("zone", "Exists", []))]}, True),
        ({"terms": [term(("zone", "In", ["a"]), ("rack", "Exists", []))]}, False),
        ({"terms": [term(("zone", "NotIn", ["a"]))]}, False),
        ({"terms": [term(("rack", "NotIn", ["a"]))]}, True),
        ({"terms": [term(("rack", "DoesNotExist", []))]}, True),
        ({"terms": [term(("cores", "Gt", ["7"]))]}, True),
        ({"terms": [term(("cores", "Gt", ["8"]))]}, False),
        ({"terms": [term(("cores", "Lt", ["9"]))]}, True),
        ({"terms": [term(("zone", "Gt", ["1"]))]}, False),
        ({"terms": [term(("rack", "Gt", ["1"]))]}, False),
        ({"terms": [term(("zone", "Like", ["a"]))]}, False),
        ({"terms": [term(name="n")]}, True),
        ({"terms": [term(name="other")]}, False),
        ({"terms": [term(("zone", "In", ["a"]), name="other")]}, False),
        ({"nodeSelector": {"zone": "b"}, "terms": [term(name="n")]}, False),
    ],
    ids=str,
)
def test_a_node_is_allowed_as_by_the_scheduler(spec: dict[str, Any], allowed: bool) -> None:
    assert rules(spec).allow("n", LABELS) is allowed


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "tolerated"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "k", "operator": "Exists"}], True),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "k", "value": "v"}], True),
        ([{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}], True),
        ([{"key": "k", "operator": "Equal", "value": "w"}], False),
        ([{"operator": "Equal", "value": "v"}], False),
        ([{"key": "other", "operator": "Exists"}], False),
    ],
    ids=str,
)
def test_taints_are_tolerated_as_by_the_scheduler(
    tolerations: list[dict[str, Any]], tolerated: bool
) -> None:
    found = rules({"tolerations": tolerations}).repelled_by(taints_of({"taints": [TAINT]}))
    assert found == (None if tolerated else Taint("k", "v", "NoSchedule"))


def test_a_cordoned_node_has_its_taint() -> None:
    cordoned = {"unschedulable": True}
    [taint] = taints_of(cordoned)
    assert rules({}).repelled_by([taint]) == taint
    assert taints_of(cordoned | {"taints": [taint._asdict()]}) == (taint,)


def test_a_preference_keeps_nobody_away() -> None:
    assert taints_of({"taints": [TAINT | {"effect": "PreferNoSchedule"}]}) == ()
    assert taints_of({"taints": "all"}) == ()
