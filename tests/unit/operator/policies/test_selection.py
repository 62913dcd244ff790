from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.cpupolicy import PodSelection
from numapin_api.meta.matching import selects
from numapin_api.meta.selectors import LabelSelector
from numapin_operator.policies.selection import mark_selected
from support.values.operator import pod_view


def expression(operator: str, *values: str) -> LabelSelector:
    raw = {"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]}
    return LabelSelector.model_validate(raw)


@pytest.mark.parametrize(
    ("operator", "values", "without", "with_a", "with_b"),
    [
        ("In", ("a", "c"), False, True, False),
        ("NotIn", ("a", "c"), True, False, True),
        ("Exists", (), False, True, True),
        ("DoesNotExist", (), True, False, False),
    ],
)
def test_expressions(
    operator: str, values: tuple[str, ...], without: bool, with_a: bool, with_b: bool
) -> None:
    selector = expression(operator, *values)
    found = [selects(selector, labels) for labels in ({}, {"tier": "a"}, {"tier": "b"})]
    assert found == [without, with_a, with_b]


def test_no_selector_and_an_empty_one_select_everything() -> None:
    assert selects(None, {})
    assert selects(LabelSelector(), {})


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))


@given(LABELS, LABELS)
def test_match_labels_is_match_expressions(wanted: dict[str, str], labels: dict[str, str]) -> None:
    """`matchLabels` means In with one value. Source: Kubernetes, labels and selectors."""
    spelled = LabelSelector.model_validate(
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()
            ]
        }
    )
    assert selects(LabelSelector(match_labels=wanted), labels) == selects(spelled, labels)


def test_pods_are_marked_by_both_selectors() -> None:
    wanted = PodSelection.model_validate(
        {
            "namespaceSelector": {"matchLabels": {"team": "trading"}},
            "podSelector": {"matchLabels": {"pin": "yes"}},
        }
    )
    pods = (
        pod_view("both", namespace="fast", labels={"pin": "yes"}),
        pod_view("no-label", namespace="fast"),
        pod_view("elsewhere", namespace="slow", labels={"pin": "yes"}),
        pod_view("unseen-namespace", namespace="new", labels={"pin": "yes"}),
    )
    marked = mark_selected(wanted, pods, {"fast": {"team": "trading"}, "slow": {}})
    assert {pod.name for pod in marked if pod.selected} == {"both"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}, False),
    ],
)
def test_a_namespace_that_was_not_observed_yet_is_waited_for(
    selector: dict[str, Any], selected: bool
) -> None:
    wanted = PodSelection.model_validate({"namespaceSelector": selector})
    (pod,) = mark_selected(wanted, [pod_view("a", namespace="new")], {})
    assert pod.selected is selected
    (pod,) = mark_selected(wanted, [pod_view("a", namespace="new")], {"new": {}})
    assert pod.selected


def test_pods_of_confined_namespaces_are_never_selected() -> None:
    wanted = PodSelection.model_validate({"confinedNamespaces": ["kube-system"]})
    pods = (pod_view("a", namespace="kube-system"), pod_view("b", namespace="team"))
    assert [pod.selected for pod in mark_selected(wanted, pods, {})] == [False, True]


def test_without_selectors_every_pod_is_selected() -> None:
    assert all(pod.selected for pod in mark_selected(PodSelection(), [pod_view("a")], {}))
