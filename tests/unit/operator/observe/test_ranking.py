"""Which policy governs a node, ranked as a whole and change by change."""

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.observe import ranking as module
from numapin_operator.observe.ranking import Ranking, rank_policies
from numapin_operator.observe.records import NodeView, PolicyView
from support.values.operator import node_view, policy_view

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_priority_then_age_then_name() -> None:
    policies = (
        policy_view("high", {"priority": 1}, created=NEW),
        policy_view("old", created=OLD),
        policy_view("new-a", created=NEW),
        policy_view("new-b", created=NEW),
        policy_view("low", {"priority": -1}, created=OLD),
    )
    for order in permutations(policies):
        ranked = rank_policies(order, {})
        assert [one.name for one in ranked] == ["high", "old", "new-a", "new-b", "low"]


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        pytest.param({}, {}, True, id="empty-selects-all"),
        pytest.param({"a": "1"}, {"a": "1", "b": "2"}, True, id="subset"),
        pytest.param({"a": "1"}, {"a": "2"}, False, id="other-value"),
        pytest.param({"a": ""}, {}, False, id="missing-is-not-empty"),
    ],
)
def test_node_selector(selector: dict[str, str], labels: dict[str, str], selected: bool) -> None:
    assert bool(rank_policies([policy_view(spec={"nodeSelector": selector})], labels)) is selected


def test_a_policy_being_deleted_selects_nothing() -> None:
    assert rank_policies([policy_view(deleting=True)], {}) == ()


NAMES = st.sampled_from(("a", "b", "c"))
LABELS = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("1", "2")))
NODES = st.builds(node_view, NAMES, LABELS)
POLICIES = st.builds(
    lambda name, selector, priority, deleting: policy_view(
        name, {"nodeSelector": selector, "priority": priority}, deleting=deleting
    ),
    NAMES,
    LABELS,
    st.integers(0, 1),
    st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        NODES,
        st.lists(POLICIES, min_size=1, max_size=3),
        st.tuples(st.just("node"), NAMES),
        st.tuples(st.just("policy"), NAMES),
    ),
    max_size=12,
)


@given(STEPS)
def test_ranking_change_by_change_is_ranking_as_a_whole(
    steps: list[NodeView | list[PolicyView] | tuple[str, str]],
) -> None:
    nodes: dict[str, NodeView] = {}
    policies: dict[str, PolicyView] = {}
    ranking = Ranking(nodes, policies)
    for step in steps:
        match step:
            case NodeView():
                nodes[step.name] = step
                ranking.node_changed(step.name)
            case list():
                policies.update({policy.name: policy for policy in step})
                for policy in step:
                    ranking.policy_changed(policy.name)
            case ("node", name):
                nodes.pop(name, None)
                ranking.node_changed(name)
            case (_, name):
                policies.pop(name, None)
                ranking.policy_changed(name)
        for name in ("a", "b", "c"):
            node = nodes.get(name)
            whole = rank_policies(policies.values(), node.labels) if node else ()
            assert ranking.of(name) == tuple(policy.name for policy in whole)
            governed = {one for one in nodes if ranking.of(one)[:1] == (name,)}
            assert set(ranking.governed(name)) == governed


def test_a_policy_says_where_it_made_a_difference() -> None:
    nodes = {name: node_view(name, {"pool": name}) for name in ("a", "b")}
    policies = {"all": policy_view("all"), "b": policy_view("b", {"nodeSelector": {"pool": "b"}})}
    ranking = Ranking(nodes, policies)
    assert ranking.policy_changed("all") == ["a", "b"]
    assert ranking.policy_changed("all") == []
    assert ranking.policy_changed("b") == ["b"]


def test_a_pool_for_each_policy_costs_a_comparison_for_each_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    selects = module._selects

    def counting(policy: PolicyView, labels: Mapping[str, str]) -> bool:
        compared.append(policy.name)
        return selects(policy, labels)

    monkeypatch.setattr(module, "_selects", counting)
    nodes: dict[str, NodeView] = {}
    policies: dict[str, PolicyView] = {}
    ranking = Ranking(nodes, policies)
    common = {"zone": "z", "arch": "amd64"}
    for number in range(300):
        name = f"n{number}"
        nodes[name] = node_view(name, common | {"pool": f"p{number % 100}"})
        ranking.node_changed(name)
    for number in range(100):
        selector = {"arch": "amd64", "pool": f"p{number}"}
        policies[f"c{number}"] = policy_view(f"c{number}", {"nodeSelector": selector})
        ranking.policy_changed(f"c{number}")
    assert len(compared) == len(nodes)
    assert len(ranking.governed("c7")) == 3
