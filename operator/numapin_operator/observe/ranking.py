"""Which policies select each node, the governing one first, kept up to date with each change.

Does no I/O.
"""

from collections.abc import Iterable, Mapping

from numapin_operator.observe.records import NodeView, PolicyView

Labels = Mapping[str, str]


def rank_policies(policies: Iterable[PolicyView], node_labels: Labels) -> tuple[PolicyView, ...]:
    """The policies that select a node, the governing one first.

    Ordered by priority (highest first), age (oldest first) and name. A policy that is being
    deleted selects nothing.
    """
    return tuple(sorted((one for one in policies if _selects(one, node_labels)), key=_order))


class Ranking:
    """The names of the policies that select each node, the governing one first.

    A node that changes costs one comparison for each policy, and a policy that changes one for each
    node; looking up costs nothing.
    """

    def __init__(self, nodes: Mapping[str, NodeView], policies: Mapping[str, PolicyView]) -> None:
        """Rank what exists later.

        Args:
            nodes: Nodes by name; its owner calls `node_changed` after each change.
            policies: CpuPolicies by name; its owner calls `policy_changed` after each change.
        """
        self._nodes, self._policies = nodes, policies
        self._ranked: dict[str, tuple[str, ...]] = {}

    def of(self, node: str) -> tuple[str, ...]:
        """The policies that select a node, the governing one first; none if it does not exist."""
        return self._ranked.get(node, ())

    def governed(self, policy: str) -> list[str]:
        """The nodes that a policy governs."""
        return [node for node, ranked in self._ranked.items() if ranked[0] == policy]

    def node_changed(self, name: str) -> bool:
        """Rank the policies of one node again; returns whether that made a difference."""
        node = self._nodes.get(name)
        ranked = rank_policies(self._policies.values(), node.labels) if node else ()
        return self._put(name, tuple(policy.name for policy in ranked))

    def policy_changed(self, name: str) -> list[str]:
        """Rank one policy again on every node; returns the nodes where that made a difference."""
        policy = self._policies.get(name)
        changed = []
        known: dict[tuple[tuple[str, ...], bool], tuple[str, ...]] = {}  # many nodes are alike
        for node, view in self._nodes.items():
            before = self._ranked.get(node, ())
            selected = policy is not None and _selects(policy, view.labels)
            if not selected and name not in before:
                continue
            if (before, selected) not in known:
                known[before, selected] = self._with(before, name, selected)
            if self._put(node, known[before, selected]):
                changed.append(node)
        return changed

    def _with(self, ranked: tuple[str, ...], name: str, selected: bool) -> tuple[str, ...]:
        others = [other for other in ranked if other != name and other in self._policies]
        names = [*others, name] if selected else others
        return tuple(sorted(names, key=lambda one: _order(self._policies[one])))

    def _put(self, node: str, ranked: tuple[str, ...]) -> bool:
        before = self._ranked.get(node, ())
        if ranked:
            self._ranked[node] = ranked
        else:
            self._ranked.pop(node, None)
        return before != ranked


def _selects(policy: PolicyView, labels: Labels) -> bool:
    return not policy.deleting and policy.spec.node_selector.items() <= labels.items()


def _order(policy: PolicyView) -> tuple[int, str, str]:
    return -policy.spec.priority, policy.created, policy.name
