"""Which policies select each node, the governing one first.

Does no I/O.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from numapin_operator.observe.records import PolicyView

K = TypeVar("K")

Labels = Mapping[str, str]
Label = tuple[str, str]
Selector = frozenset[Label]


def rank_policies(policies: Iterable[PolicyView], node_labels: Labels) -> tuple[PolicyView, ...]:
    """The policies that select a node, the governing one first.

    Ordered by priority (highest first), age (oldest first) and name. A policy that is being
    deleted selects nothing.
    """
    return tuple(sorted((one for one in policies if _selects(one, node_labels)), key=_order))


class Ranking:
    """The policies that select each node, the governing one first.

    Which policy governs each node is known at any time. The others are found when somebody asks for
    them: what a change costs grows with the number of nodes and of policies, not of their pairs.
    """

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}
        """The labels of each node."""
        self._nodes_of: defaultdict[Label, set[str]] = defaultdict(set)
        self._policies: dict[str, PolicyView] = {}
        """The policies that select nodes; what decides nothing here may be out of date."""
        self._label_of: dict[str, Label | None] = {}
        """The label by which each policy is found; None if it selects every node."""
        self._policies_of: defaultdict[Label | None, set[str]] = defaultdict(set)
        self._governing: dict[str, str] = {}
        self._governed: defaultdict[str, set[str]] = defaultdict(set)

    def of(self, node: str) -> tuple[str, ...]:
        """The policies that select a node, the governing one first; none if it does not exist."""
        if (labels := self._labels.get(node)) is None:
            return ()
        found = (self._policies_of.get(label, ()) for label in (None, *labels.items()))
        candidates = (self._policies[name] for names in found for name in names)
        return tuple(policy.name for policy in rank_policies(candidates, labels))

    def governing(self, node: str) -> str | None:
        """The policy that governs a node."""
        return self._governing.get(node)

    def governed(self, policy: str) -> AbstractSet[str]:
        """The nodes that a policy governs."""
        return self._governed.get(policy, frozenset())

    def node_changed(self, name: str, labels: Labels | None) -> bool:
        """Take in the labels of a node, None if it is gone; returns whether they differ."""
        before = self._labels.get(name)
        if labels == before:
            return False
        for label in (before or {}).items():
            _discard(self._nodes_of, label, name)
        for label in (labels or {}).items():
            self._nodes_of[label].add(name)
        if labels is None:
            del self._labels[name]
        else:
            self._labels[name] = labels
        self._release({name})
        for governing in self.of(name)[:1]:
            self._take(governing, {name})
        return True

    def policies_changed(self, changed: Mapping[str, PolicyView | None]) -> set[str]:
        """Take in policies by name, None for one that is gone.

        Returns:
            Every node whose policies, or their order, may differ now.
        """
        selectors: set[Selector] = set()
        for name, policy in changed.items():
            before = self._policies.get(name)
            after = None if policy is None or policy.deleting else policy
            if _place(before) != _place(after):
                self._file(name, after)
                selectors.update(_selector(one) for one in (before, after) if one is not None)
        others = set(self._labels)
        for selector in selectors:
            others -= self._with(selector, others)
        nodes = self._labels.keys() - others
        self._release(nodes)
        self._assign(nodes)
        return nodes

    def _file(self, name: str, policy: PolicyView | None) -> None:
        """Have a policy found by the label of its selector that the fewest nodes have."""
        if name in self._policies:
            del self._policies[name]
            _discard(self._policies_of, self._label_of.pop(name), name)
        if policy is not None:
            labels = policy.spec.node_selector.items()
            label = min(labels, key=lambda one: len(self._nodes_of.get(one, ())), default=None)
            self._policies[name], self._label_of[name] = policy, label
            self._policies_of[label].add(name)

    def _with(self, selector: Selector, nodes: set[str]) -> set[str]:
        """Those of some nodes that have all labels of a selector."""
        found = sorted((nodes, *(self._nodes_of.get(one, set()) for one in selector)), key=len)
        return found[0].intersection(*found[1:])

    def _assign(self, nodes: set[str]) -> None:
        """Have nodes, which no policy governs now, governed again."""
        left = set(nodes)
        for policy in self._first_of_each_selector():
            if not left:
                return
            if taken := self._with(_selector(policy), left):
                self._take(policy.name, taken)
                left -= taken

    def _first_of_each_selector(self) -> Iterator[PolicyView]:
        """The policies that can govern nodes, in the order of their precedence."""
        seen: set[Selector] = set()
        for policy in sorted(self._policies.values(), key=_order):
            if (selector := _selector(policy)) not in seen:
                seen.add(selector)
                yield policy

    def _release(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            if (before := self._governing.pop(node, None)) is not None:
                _discard(self._governed, before, node)

    def _take(self, policy: str, nodes: set[str]) -> None:
        self._governed[policy] |= nodes
        self._governing.update(dict.fromkeys(nodes, policy))


def _discard(index: dict[K, set[str]], key: K, name: str) -> None:
    index[key].discard(name)
    if not index[key]:
        del index[key]


def _selects(policy: PolicyView, labels: Labels) -> bool:
    return not policy.deleting and policy.spec.node_selector.items() <= labels.items()


def _order(policy: PolicyView) -> tuple[int, str, str]:
    return -policy.spec.priority, policy.created, policy.name


def _selector(policy: PolicyView) -> Selector:
    return frozenset(policy.spec.node_selector.items())


def _place(policy: PolicyView | None) -> object:
    """What decides which nodes a policy selects, and its precedence there."""
    return None if policy is None else (_order(policy), _selector(policy))
