"""What a policy demands of nodes: labels that satisfy it, and what a node lacks."""

from typing import Any

import pytest

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_cli.inputs.node_labels import selected_labels, unmet_demands
from numapin_operator.observe.stores.selectors import selects_node

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def spec(*expressions: tuple[str, str, tuple[str, ...]], **labels: str) -> CpuPolicySpec:
    each = [{"key": key, "operator": how, "values": values} for key, how, values in expressions]
    return CpuPolicySpec.model_validate(
        {"nodes": {"matchLabels": labels, "matchExpressions": each}}
    )


SELECTABLE: dict[str, tuple[CpuPolicySpec, dict[str, str]]] = {
    "every node": (spec(), {}),
    "workers": (spec((CONTROL_PLANE, "DoesNotExist", ())), {}),
    "labels": (spec(pool="fast"), {"pool": "fast"}),
    "exists": (spec(("gpu", "Exists", ())), {"gpu": ""}),
    "in, but for one": (
        spec(("zone", "In", ("a", "b")), ("zone", "NotIn", ("a",))),
        {"zone": "b"},
    ),
    "exists and is": (spec(("zone", "Exists", ()), zone="c"), {"zone": "c"}),
    "several sets": (
        spec(("zone", "In", ("a", "b", "c")), ("zone", "In", ("b",))),
        {"zone": "b"},
    ),
}


@pytest.mark.parametrize("case", SELECTABLE)
def test_labels_that_a_policy_selects(case: str) -> None:
    policy, labels = SELECTABLE[case]
    assert selected_labels(policy) == labels
    assert selects_node(policy, labels)
    assert list(unmet_demands(policy, labels)) == []


def test_the_simple_map_is_named_too() -> None:
    policy = CpuPolicySpec.model_validate({"nodeSelector": {"pool": "fast", "zone": "a"}})
    assert selected_labels(policy) == {"pool": "fast", "zone": "a"}
    assert list(unmet_demands(policy, {"zone": "b"})) == [
        "pool=fast (the node has no such label)",
        "zone=a (the node has b)",
    ]


UNMET: list[tuple[tuple[str, str, tuple[str, ...]], dict[str, str], str]] = [
    (("a", "In", ("2", "1")), {"a": "3"}, "a in (1,2) (the node has 3)"),
    (("a", "In", ("1",)), {}, "a=1 (the node has no such label)"),
    (("a", "NotIn", ("1", "2")), {"a": "2"}, "a notin (1,2) (the node has 2)"),
    (("a", "Exists", ()), {}, "a (the node has no such label)"),
    (("a", "DoesNotExist", ()), {"a": "1"}, "!a (the node has 1)"),
]


@pytest.mark.parametrize(("one", "labels", "text"), UNMET, ids=[one[2] for one in UNMET])
def test_what_a_node_lacks_is_written_as_kubectl_writes_it(
    one: tuple[str, str, tuple[str, ...]], labels: dict[str, Any], text: str
) -> None:
    assert list(unmet_demands(spec(one), labels)) == [text]
