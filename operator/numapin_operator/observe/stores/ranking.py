"""Which policies select each node, the governing one first.

Does no I/O.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

from numapin_api.meta.matching import Labels
from numapin_operator.observe.records import PolicyView
from numapin_operator.observe.stores.selectors import Demand, demands, selects_node

K = TypeVar("K")

Label = tuple[str, str]
Selector = frozenset[Demand]

ANY_NODE: Final[tuple[None]] = (None,)
"""Where policies are filed that cannot be found by a label."""


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
        self._values_of: defaultdict[str, set[str]] = defaultdict(set)
        """The values that nodes have of each label."""
        self._policies: dict[str, PolicyView] = {}
        """The policies that select nodes; what decides nothing here may be out of date."""
        self._filed_under: dict[str, tuple[Label | None, ...]] = {}
        """The labels by which each policy is found, one of which each node has that it selects."""
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
            if label not in self._nodes_of:
                _discard(self._values_of, *label)
        for label in (labels or {}).items():
            self._nodes_of[label].add(name)
            self._values_of[label[0]].add(label[1])
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
        """Have a policy found by the labels of its selector that the fewest nodes have."""
        if name in self._policies:
            del self._policies[name]
            for label in self._filed_under.pop(name):
                _discard(self._policies_of, label, name)
        if policy is not None:
            named = (one for one in _selector(policy) if one.operator == "In")
            fewest = min(named, key=lambda one: len(self._having(one)), default=None)
            labels = ANY_NODE if fewest is None else tuple(_labels(fewest))
            self._policies[name], self._filed_under[name] = policy, labels
            for label in labels:
                self._policies_of[label].add(name)

    def _with(self, selector: Selector, nodes: set[str]) -> set[str]:
        """Those of some nodes whose labels match a selector."""
        wanted = (self._having(one) for one in selector if not one.is_absence)
        found = sorted((nodes, *wanted), key=len)
        unwanted = (self._having(one) for one in selector if one.is_absence)
        return found[0].intersection(*found[1:]).difference(*unwanted)

    def _having(self, demand: Demand) -> set[str]:
        """The nodes that have a label that a demand names, wanted or not; do not change it."""
        values = demand.values or self._values_of.get(demand.key, frozenset())
        each = [self._nodes_of.get((demand.key, value), set()) for value in values]
        return each[0] if len(each) == 1 else set().union(*each)

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
    return not policy.deleting and selects_node(policy.spec, labels)


def _order(policy: PolicyView) -> tuple[int, str, str]:
    return -policy.spec.priority, policy.created, policy.name


def _selector(policy: PolicyView) -> Selector:
    return demands(policy.spec)


def _labels(demand: Demand) -> Iterator[Label]:
    return ((demand.key, value) for value in sorted(demand.values))


def _place(policy: PolicyView | None) -> object:
    """What decides which nodes a policy selects, and its precedence there."""
    return None if policy is None else (_order(policy), _selector(policy))
