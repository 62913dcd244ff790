"""Which policy governs a node, ranked as a whole and change by change."""

from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import NodeView, PolicyView
from numapin_operator.observe.stores import ranking as module
from numapin_operator.observe.stores.ranking import Ranking, rank_policies
from numapin_operator.observe.stores.versioned_cache import Listed
from support.real.lines_run import lines_run
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


CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@pytest.mark.parametrize(
    ("nodes", "labels", "selected"),
    [
        pytest.param({}, {}, True, id="empty-selects-all"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "1"}, True, id="label"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "2"}, False, id="other-value"),
        pytest.param(("DoesNotExist", CONTROL_PLANE), {"a": "1"}, True, id="a-worker"),
        pytest.param(("DoesNotExist", CONTROL_PLANE), {CONTROL_PLANE: ""}, False, id="control"),
        pytest.param(("Exists", "a"), {"a": ""}, True, id="exists"),
        pytest.param(("In", "a", "1", "2"), {"a": "2"}, True, id="in"),
        pytest.param(("In", "a", "1", "2"), {}, False, id="missing-is-not-in"),
        pytest.param(("NotIn", "a", "1", "2"), {"a": "2"}, False, id="not-in"),
        pytest.param(("NotIn", "a", "1", "2"), {}, True, id="missing-is-not-in-either"),
    ],
)
def test_nodes(
    nodes: dict[str, object] | tuple[str, ...], labels: dict[str, str], selected: bool
) -> None:
    selector = {"matchExpressions": [expression(*nodes)]} if isinstance(nodes, tuple) else nodes
    assert bool(rank_policies([policy_view(spec={"nodes": selector})], labels)) is selected


def expression(operator: str, key: str, *values: str) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_where_both_selectors_are_both_must_match() -> None:
    """The API server refuses such a policy; one of an older CRD may be there."""
    both = policy_view(spec={"nodeSelector": {"a": "1"}, "nodes": {"matchLabels": {"b": "1"}}})
    found = [bool(rank_policies([both], one)) for one in ({"a": "1"}, {"b": "1"})]
    assert found == [False, False]
    assert rank_policies([both], {"a": "1", "b": "1"})


def test_a_policy_being_deleted_selects_nothing() -> None:
    assert rank_policies([policy_view(deleting=True)], {}) == ()


NAMES = st.sampled_from(("a", "b", "c"))
LABELS = st.dictionaries(st.sampled_from(("x", "y")), st.sampled_from(("1", "2")))
NODES = st.builds(node_view, NAMES, LABELS)
VALUES = st.lists(st.sampled_from(("1", "2")), min_size=1, max_size=2)
EXPRESSIONS = st.one_of(
    st.builds(
        lambda operator, key, values: expression(operator, key, *values),
        st.sampled_from(("In", "NotIn")),
        st.sampled_from(("x", "y")),
        VALUES,
    ),
    st.builds(expression, st.sampled_from(("Exists", "DoesNotExist")), st.sampled_from(("x", "y"))),
)
SELECTORS = st.one_of(
    st.builds(lambda labels: {"nodeSelector": labels}, LABELS),
    st.builds(
        lambda labels, each: {"nodes": {"matchLabels": labels, "matchExpressions": each}},
        LABELS,
        st.lists(EXPRESSIONS, max_size=2),
    ),
)
POLICIES = st.builds(
    lambda name, selector, priority, created, deleting: policy_view(
        name, {**selector, "priority": priority}, created=created, deleting=deleting
    ),
    NAMES,
    SELECTORS,
    st.integers(0, 1),
    st.sampled_from((OLD, NEW)),
    st.booleans(),
)
LISTS = st.lists(POLICIES, max_size=3, unique_by=lambda policy: policy.name)
STEPS = st.lists(
    st.one_of(
        NODES,
        POLICIES,
        LISTS,
        st.tuples(st.just("node"), NAMES),
        st.tuples(st.just("policy"), NAMES),
    ),
    max_size=12,
)


class Ranked:
    """A ranking beside all nodes and policies that it was told of."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.policies: dict[str, PolicyView] = {}
        self.ranking = Ranking()

    def take(self, step: NodeView | PolicyView | list[PolicyView] | tuple[str, str]) -> set[str]:
        """Take in a change; returns the nodes that it is said to concern."""
        match step:
            case NodeView():
                self.nodes[step.name] = step
                return {step.name} if self.ranking.node_changed(step.name, step.labels) else set()
            case PolicyView():
                return self._put({step.name: step})
            case list():
                listed = {policy.name: policy for policy in step}
                return self._put({**dict.fromkeys(self.policies), **listed})
            case ("node", name):
                self.nodes.pop(name, None)
                return {name} if self.ranking.node_changed(name, None) else set()
            case (_, name):
                return self._put({name: None})

    def _put(self, changed: Mapping[str, PolicyView | None]) -> set[str]:
        for name, policy in changed.items():
            if policy is None:
                self.policies.pop(name, None)
            else:
                self.policies[name] = policy
        return self.ranking.policies_changed(changed)


@given(STEPS)
def test_ranking_change_by_change_is_ranking_as_a_whole(
    steps: list[NodeView | PolicyView | list[PolicyView] | tuple[str, str]],
) -> None:
    world, names = Ranked(), ("a", "b", "c")
    for step in steps:
        before = {name: world.ranking.of(name) for name in names}
        concerned = world.take(step)
        for name in names:
            node = world.nodes.get(name)
            whole = rank_policies(world.policies.values(), node.labels) if node else ()
            ranked = tuple(policy.name for policy in whole)
            assert world.ranking.of(name) == ranked
            assert world.ranking.governing(name) == next(iter(ranked), None)
            assert ranked == before[name] or name in concerned
        for name in names:
            governed = {one for one in world.nodes if world.ranking.governing(one) == name}
            assert world.ranking.governed(name) == governed


def test_a_policy_says_where_it_makes_a_difference() -> None:
    ranking = Ranking()
    for name in ("a", "b"):
        ranking.node_changed(name, {"pool": name})
    assert ranking.policies_changed({"all": policy_view("all")}) == {"a", "b"}
    reserving = policy_view("all", {"reserved": {"count": 3}}, generation=2)
    assert ranking.policies_changed({"all": reserving}) == set()
    one = {"b": policy_view("b", {"nodeSelector": {"pool": "b"}})}
    assert ranking.policies_changed(one) == {"b"}
    assert ranking.policies_changed(dict.fromkeys(one)) == {"b"}
    assert not ranking.node_changed("a", {"pool": "a"})


def test_a_pool_for_each_policy_costs_a_comparison_for_each_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    selects = module._selects

    def counting(policy: PolicyView, labels: Mapping[str, str]) -> bool:
        compared.append(policy.name)
        return selects(policy, labels)

    monkeypatch.setattr(module, "_selects", counting)
    ranking = Ranking()
    common = {"zone": "z", "arch": "amd64"}
    for number in range(300):
        ranking.node_changed(f"n{number}", common | {"pool": f"p{number % 100}"})
    for number in range(100):
        selector = {"arch": "amd64", "pool": f"p{number}"}
        policy = policy_view(f"c{number}", {"nodeSelector": selector})
        ranking.policies_changed({policy.name: policy})
    for number in range(300):
        assert ranking.of(f"n{number}") == (f"c{number % 100}",)
    assert len(compared) == 300
    assert len(ranking.governed("c7")) == 3


NODE_COUNT, POLICY_COUNT = 500, 100
LINES_FOR_EACH = 40
"""Lines of Python run for each node and policy; for each pair they would be many more."""


def overlapping(number: int) -> dict[str, str]:
    """The selector of a policy: it has all nodes, or half of them, in common with others."""
    return [{}, {"arch": "amd64"}, {"half": "0"}, {"arch": "amd64", "half": "1"}][number % 4]


def test_policies_of_expressions_cost_no_step_for_each_pair() -> None:
    """Whatever the operator: each has its own selector, and many nodes in common with others."""
    state = overlapped()
    policies = [
        policy_view(
            f"c{number}",
            {"nodes": {"matchExpressions": [each, expression("NotIn", "host", str(number))]}},
        )
        for number in range(POLICY_COUNT)
        for each in [
            [
                expression("DoesNotExist", CONTROL_PLANE),
                expression("Exists", "arch"),
                expression("In", "half", "0", "1"),
                expression("NotIn", "half", "0"),
            ][number % 4]
        ]
    ]
    most = LINES_FOR_EACH * (NODE_COUNT + POLICY_COUNT)
    assert lines_run(lambda: state.replace_policies(Listed(tuple(policies), 20))) < most
    assert state.governed("c0") == NODE_COUNT - 1
    assert state.governed("c1") == 1, "n0, which c0 leaves out"


def overlapped() -> ClusterState:
    """Nodes that every fourth policy selects, and others half of them."""
    state = ClusterState()
    for number in range(NODE_COUNT):
        labels = {"arch": "amd64", "half": str(number % 2), "host": str(number)}
        state.put_node(node_view(f"n{number}", labels))
    return state


def test_policies_that_select_every_node_cost_no_step_for_each_pair() -> None:
    most = LINES_FOR_EACH * (NODE_COUNT + POLICY_COUNT)
    assert most < NODE_COUNT * POLICY_COUNT
    state = overlapped()
    policies = [
        policy_view(f"c{number}", {"nodeSelector": overlapping(number), "priority": number})
        for number in range(POLICY_COUNT)
    ]
    assert lines_run(lambda: state.replace_policies(Listed(tuple(policies), 20))) < most
    assert state.governed("c99") == NODE_COUNT // 2
    assert state.governed("c98") == NODE_COUNT // 2
    assert len(state.policies_of("n0")) == 3 * POLICY_COUNT // 4
    first = policy_view("c0", {"priority": POLICY_COUNT}, version=21, generation=2)
    assert lines_run(lambda: state.put_policy_view(first)) < most
    assert state.governed("c0") == NODE_COUNT
    assert lines_run(lambda: state.replace_policies(Listed((), 22))) < most
    assert state.policies_of("n0") == ()


def test_selectors_that_share_no_node_cost_no_step_for_each_pair() -> None:
    most = LINES_FOR_EACH * (NODE_COUNT + POLICY_COUNT)
    state = overlapped()
    nobody = [
        policy_view(f"c{number}", {"nodeSelector": {"half": "0", "host": str(2 * number + 1)}})
        for number in range(POLICY_COUNT)
    ]
    assert lines_run(lambda: state.replace_policies(Listed(tuple(nobody), 20))) < most
    assert not any(state.governed(policy.name) for policy in nobody)
