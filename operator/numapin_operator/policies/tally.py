"""Counts the nodes that each policy selects and how far it has come, change by change.

Does no I/O.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from typing import Final, TypeVar

from numapin_api.conditions.reasons import Reason
from numapin_operator.policies.status import (
    EXAMPLES_NAMED,
    STALLED_NAMED,
    NodeGroup,
    NodeOutcome,
    Phase,
    PolicyNodes,
)
from numapin_operator.telemetry.states import NodesState

NOT_PLANNED: Final = "not planned yet"

K = TypeVar("K")

Ranked = tuple[str, ...]
"""The names of the policies that select a node, the governing one first."""


class Tally:
    """The nodes of every policy.

    A change of a node takes the same time whether a policy selects five nodes or 5,000, and so
    does a summary, except the first one of a policy's generation.
    """

    def __init__(self) -> None:
        self._ranked: dict[str, Ranked] = {}
        self._outcomes: dict[str, NodeOutcome] = {}
        self._policies: dict[str, _Nodes] = {}

    def rank(self, node: str, ranked: Ranked) -> set[str]:
        """Take in which policies select a node; returns those whose summary differs now."""
        before, outcome = self._ranked.get(node, ()), self._outcomes.get(node)
        if before == ranked:
            return set()
        same = before[:1] == ranked[:1]  # then only the policies that came or went are concerned
        left = set(before) - set(ranked) if same else set(before)
        come = set(ranked) - set(before) if same else set(ranked)
        for name in left:
            self._policies[name].forget(node, before, outcome)
            if self._policies[name].is_empty():
                del self._policies[name]
        for name in come:
            self._policies.setdefault(name, _Nodes(name)).add(node, ranked, outcome)
        if ranked:
            self._ranked[node] = ranked
        else:
            self._ranked.pop(node, None)
        return left | come

    def judge(self, node: str, outcome: NodeOutcome | None) -> set[str]:
        """Take in the outcome of a node's governing policy, None if none governs it.

        Returns:
            The policies whose summary differs now.
        """
        before = self._outcomes.get(node)
        if before == outcome:
            return set()
        if outcome is None:
            del self._outcomes[node]
        else:
            self._outcomes[node] = outcome
        if ranked := self._ranked.get(node):
            self._policies[ranked[0]].move(node, before, outcome)
        return {one.policy for one in (before, outcome) if one is not None}

    def state(self) -> NodesState:
        """The nodes of all policies; may be called in any thread."""
        outcomes = list(self._outcomes.values())
        return NodesState(
            Counter(one.phase.value.replace(" ", "_") for one in outcomes),
            sum(one.refused for one in outcomes),
            sum(one.outdated for one in outcomes),
        )

    def summary(self, policy: str, generation: int, uid: str = "") -> PolicyNodes:
        """The nodes of a policy; outcomes of another generation count as not planned yet.

        So do those of a deleted policy of the same name, which has another UID.
        """
        nodes = self._policies.get(policy) or _Nodes(policy)
        if (nodes.generation, nodes.uid) != (generation, uid):
            nodes.begin(generation, uid, self._outcomes)
        return PolicyNodes(
            governed=len(nodes.governed),
            in_force=sum(len(names) for names in nodes.of_phase(Phase.IN_FORCE).values()),
            remarks=tuple(
                group
                for group in self._groups(nodes, Phase.IN_FORCE)
                if group.common != Reason.IN_FORCE
            ),
            under_way=tuple(self._groups(nodes, Phase.UNDER_WAY)),
            stalled=tuple(self._groups(nodes, Phase.STALLED)),
            stalled_nodes=self._first_stalled(nodes),
            not_served=tuple(self._groups(nodes, Phase.NOT_SERVED)),
            refused=nodes.refused,
            outdated=nodes.outdated,
            overruled=tuple(
                NodeGroup(winner, len(names), tuple(names[:EXAMPLES_NAMED]))
                for winner, names in sorted(nodes.overruled.items())
            ),
        )

    def _groups(self, nodes: "_Nodes", phase: Phase) -> Iterator[NodeGroup]:
        """The nodes in one phase by reason, the most frequent first."""
        by_reason = nodes.of_phase(phase)
        for reason in sorted(by_reason, key=lambda reason: (-len(by_reason[reason]), reason)):
            names = by_reason[reason]
            first = nodes.current(self._outcomes.get(names[0]))
            message = first.message if first else NOT_PLANNED
            yield NodeGroup(reason, len(names), tuple(names[:EXAMPLES_NAMED]), message)

    def _first_stalled(self, nodes: "_Nodes") -> tuple[NodeOutcome, ...]:
        groups = nodes.of_phase(Phase.STALLED).values()
        names = sorted(name for group in groups for name in group[:STALLED_NAMED])
        return tuple(self._outcomes[name] for name in names[:STALLED_NAMED])


class _Nodes:
    """The nodes of one policy. Every list of names is sorted.

    Attributes:
        generation: the policy's generation to which the outcomes in `groups` belong.
        uid: the policy's UID, likewise.
        governed: the nodes that it governs.
        overruled: the nodes where another policy governs, by that policy's name.
        groups: the governed nodes by phase and reason.
        refused: the refused pods on the governed nodes, as far as their outcomes are current.
        outdated: the outdated containers, likewise.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.generation, self.uid = 0, ""
        self.governed: list[str] = []
        self.overruled: dict[str, list[str]] = {}
        self.groups: dict[tuple[Phase, str], list[str]] = {}
        self.refused = self.outdated = 0

    def is_empty(self) -> bool:
        return not (self.governed or self.overruled)

    def current(self, outcome: NodeOutcome | None) -> NodeOutcome | None:
        """An outcome, if it is one of this policy's generation."""
        if outcome is None:
            return None
        of = (outcome.policy, outcome.generation, outcome.policy_uid)
        return outcome if of == (self._name, self.generation, self.uid) else None

    def of_phase(self, phase: Phase) -> dict[str, list[str]]:
        """The governed nodes in one phase, by reason."""
        return {reason: names for (one, reason), names in self.groups.items() if one is phase}

    def add(self, node: str, ranked: Ranked, outcome: NodeOutcome | None) -> None:
        if ranked[0] == self._name:
            insort(self.governed, node)
            insort(self.groups.setdefault(self._group(outcome), []), node)
            self._count(outcome, 1)
        else:
            insort(self.overruled.setdefault(ranked[0], []), node)

    def forget(self, node: str, ranked: Ranked, outcome: NodeOutcome | None) -> None:
        if ranked[0] == self._name:
            _remove(self.governed, node)
            _remove_from(self.groups, self._group(outcome), node)
            self._count(outcome, -1)
        else:
            _remove_from(self.overruled, ranked[0], node)

    def move(self, node: str, before: NodeOutcome | None, after: NodeOutcome | None) -> None:
        """Take in another outcome of a governed node."""
        self._count(before, -1)
        self._count(after, 1)
        if self._group(before) != self._group(after):
            _remove_from(self.groups, self._group(before), node)
            insort(self.groups.setdefault(self._group(after), []), node)

    def begin(self, generation: int, uid: str, outcomes: dict[str, NodeOutcome]) -> None:
        """Group the governed nodes by their outcomes of another generation."""
        self.generation, self.uid = generation, uid
        self.groups, self.refused, self.outdated = {}, 0, 0
        for node in self.governed:
            outcome = outcomes.get(node)
            self.groups.setdefault(self._group(outcome), []).append(node)
            self._count(outcome, 1)

    def _count(self, outcome: NodeOutcome | None, sign: int) -> None:
        if found := self.current(outcome):
            self.refused += sign * found.refused
            self.outdated += sign * found.outdated

    def _group(self, outcome: NodeOutcome | None) -> tuple[Phase, str]:
        if found := self.current(outcome):
            return found.phase, found.reason
        return Phase.UNDER_WAY, Reason.APPLYING


def _remove_from(groups: dict[K, list[str]], key: K, name: str) -> None:
    _remove(groups[key], name)
    if not groups[key]:
        del groups[key]


def _remove(names: list[str], name: str) -> None:
    """Remove a name from a sorted list that contains it."""
    del names[bisect_left(names, name)]
