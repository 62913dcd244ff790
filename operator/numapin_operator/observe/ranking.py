"""Which policies select each node, the governing one first, kept up to date with each change.

Does no I/O.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from numapin_operator.observe.records import NodeView, PolicyView

K = TypeVar("K")

Labels = Mapping[str, str]
Label = tuple[str, str]


def rank_policies(policies: Iterable[PolicyView], node_labels: Labels) -> tuple[PolicyView, ...]:
    """The policies that select a node, the governing one first.

    Ordered by priority (highest first), age (oldest first) and name. A policy that is being
    deleted selects nothing.
    """
    return tuple(sorted((one for one in policies if _selects(one, node_labels)), key=_order))


class Ranking:
    """The names of the policies that select each node, the governing one first.

    Nodes are found by their labels, and policies by one label of their selectors: a change costs
    one comparison for each policy or node that can be concerned. Looking up costs nothing.
    """

    def __init__(self, nodes: Mapping[str, NodeView], policies: Mapping[str, PolicyView]) -> None:
        """Rank nodes and policies as they change.

        Args:
            nodes: Nodes by name; its owner calls `node_changed` after each change.
            policies: CpuPolicies by name; its owner calls `policy_changed` after each change.
        """
        self._nodes, self._policies = nodes, policies
        self._ranked: dict[str, tuple[str, ...]] = {}
        self._selected: defaultdict[str, set[str]] = defaultdict(set)
        """The nodes that each policy selects."""
        self._governed: defaultdict[str, set[str]] = defaultdict(set)
        self._nodes_of: defaultdict[Label, set[str]] = defaultdict(set)
        self._labels: dict[str, Labels] = {}
        """The labels by which each node is found."""
        self._policies_of: defaultdict[Label | None, set[str]] = defaultdict(set)
        self._label_of: dict[str, Label | None] = {}
        """The label by which each policy is found; None if it selects every node."""
        for name in nodes:
            self.node_changed(name)

    def of(self, node: str) -> tuple[str, ...]:
        """The policies that select a node, the governing one first; none if it does not exist."""
        return self._ranked.get(node, ())

    def governed(self, policy: str) -> AbstractSet[str]:
        """The nodes that a policy governs."""
        return self._governed.get(policy, frozenset())

    def node_changed(self, name: str) -> bool:
        """Rank the policies of one node again; returns whether that made a difference."""
        node = self._nodes.get(name)
        labels = node.labels if node else {}
        for label in self._labels.pop(name, {}).items():
            _discard(self._nodes_of, label, name)
        if node is not None:
            self._labels[name] = labels
        for label in labels.items():
            self._nodes_of[label].add(name)
        found = [self._policies_of.get(label, set()) for label in (None, *labels.items())]
        candidates = (self._policies[one] for one in set().union(*found) if one in self._policies)
        ranked = rank_policies(candidates, labels) if node else ()
        after = tuple(policy.name for policy in ranked)
        return self._put(name, after, set(after) ^ set(self._ranked.get(name, ())))

    def policy_changed(self, name: str) -> list[str]:
        """Rank one policy again on every node; returns the nodes where that made a difference."""
        policy = self._policies.get(name)
        self._file(name, policy)
        changed = []
        known: dict[tuple[tuple[str, ...], bool], tuple[str, ...]] = {}  # many nodes are alike
        for node in sorted(self._selected.get(name, set()) | self._candidates(policy)):
            before = self._ranked.get(node, ())
            view = self._nodes.get(node)
            selected = policy is not None and view is not None and _selects(policy, view.labels)
            if not selected and name not in before:
                continue
            if (before, selected) not in known:
                known[before, selected] = self._with(before, name, selected)
            if self._put(node, known[before, selected], (name,)):
                changed.append(node)
        return changed

    def _file(self, name: str, policy: PolicyView | None) -> None:
        """Have a policy found by a label of its selector."""
        if name in self._label_of:
            _discard(self._policies_of, self._label_of.pop(name), name)
        if policy is not None:
            labels = policy.spec.node_selector.items()
            label = min(labels, key=lambda one: len(self._nodes_of.get(one, ())), default=None)
            self._label_of[name] = label
            self._policies_of[label].add(name)

    def _candidates(self, policy: PolicyView | None) -> AbstractSet[str]:
        """The nodes that a policy can select."""
        if policy is None:
            return frozenset()
        if not policy.spec.node_selector:
            return self._nodes.keys()
        with_label = [self._nodes_of.get(one, set()) for one in policy.spec.node_selector.items()]
        return min(with_label, key=len)

    def _with(self, ranked: tuple[str, ...], name: str, selected: bool) -> tuple[str, ...]:
        others = [other for other in ranked if other != name and other in self._policies]
        names = [*others, name] if selected else others
        return tuple(sorted(names, key=lambda one: _order(self._policies[one])))

    def _put(self, node: str, ranked: tuple[str, ...], concerned: Iterable[str]) -> bool:
        """Take in a node's ranking; `concerned` are the policies that may have come or left."""
        before = self._ranked.get(node, ())
        if before == ranked:
            return False
        for name in concerned:
            if name in ranked:
                self._selected[name].add(node)
            else:
                _discard(self._selected, name, node)
        if before[:1] != ranked[:1]:
            if before:
                _discard(self._governed, before[0], node)
            if ranked:
                self._governed[ranked[0]].add(node)
        if ranked:
            self._ranked[node] = ranked
        else:
            self._ranked.pop(node, None)
        return True


def _discard(index: dict[K, set[str]], key: K, name: str) -> None:
    index[key].discard(name)
    if not index[key]:
        del index[key]


def _selects(policy: PolicyView, labels: Labels) -> bool:
    return not policy.deleting and policy.spec.node_selector.items() <= labels.items()


def _order(policy: PolicyView) -> tuple[int, str, str]:
    return -policy.spec.priority, policy.created, policy.name
