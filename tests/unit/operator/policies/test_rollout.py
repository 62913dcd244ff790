"""Turns under random events: never too many at a time, none after a stall, all in the end."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_api.conditions.reasons import Reason
from numapin_operator.observe.records import AssignmentView, PolicyView
from numapin_operator.policies.rollout import Rollout, node_limit
from numapin_operator.policies.status import NodeOutcome, Phase
from support.values.operator import PLANNED, assignment_view, policy_view

NODES = tuple("abcdefgh")


@pytest.mark.parametrize(
    ("setting", "nodes", "limit"),
    [
        ("10%", 1, None),
        ("10%", 2, 1),
        ("10%", 10, 1),
        ("10%", 11, 2),
        ("100%", 10, None),
        ("3", 3, None),
        ("3", 4, 3),
        ("99%", 100, 99),
        ("99%", 10, None),
    ],
)
def test_node_limit(setting: str, nodes: int, limit: int | None) -> None:
    assert node_limit(setting, nodes) == limit


class Nodes:
    """Eight nodes; those in `queue` are planned next. Generations count edits."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.policies: dict[str, PolicyView] = {"policy": policy_view("policy")}
        self.queue = list(NODES)
        self.rollout = Rollout(self.queue.append, self.policies, lambda _: len(NODES))
        self.followed = dict.fromkeys(NODES, 1)
        self.unanswered: set[str] = set()
        self.stalled: dict[str, int] = {}

    @property
    def newest(self) -> int:
        return self.policies["policy"].generation

    def edit(self) -> None:
        spec = {"rollout": {"maxConcurrent": self.most}}
        edited = policy_view("policy", spec, generation=self.newest + 1)
        self.policies["policy"] = edited
        self.queue.extend(NODES)

    def view(self, node: str) -> AssignmentView:
        written = {"name": "policy", "generation": self.followed[node]}
        return assignment_view(PLANNED | {"policy": written}, node=node)

    def plan(self) -> None:
        """Plan the first node of the queue, as the controller does."""
        if not self.queue:
            return
        node = self.queue.pop(0)
        turn = self.rollout.turn(node, self.policies["policy"], self.view(node))
        assert turn.policy is not None
        if not turn.wait:
            assert turn.policy.generation == self.newest
            if self.followed[node] != self.newest:
                self.followed[node] = self.newest
                self.unanswered.add(node)
                self.stalled.pop(node, None)
        else:
            assert turn.policy.generation == self.followed[node]
        self.rollout.settle(node, self.outcome(node), waits=bool(turn.wait))

    def outcome(self, node: str) -> NodeOutcome:
        base = NodeOutcome(node, "policy", self.newest, Phase.IN_FORCE)
        if node in self.unanswered:
            return replace(base, phase=Phase.UNDER_WAY, reason=Reason.WAITING_FOR_ENFORCER.value)
        if node in self.stalled:
            return replace(base, phase=Phase.STALLED, reason=Reason.KUBELET_STATIC_POLICY.value)
        return base

    def answer(self, node: str, *, stalls: bool) -> None:
        self.unanswered.discard(node)
        self.stalled.pop(node, None)
        if stalls:
            self.stalled[node] = self.followed[node]
        self.queue.append(node)

    def drain(self) -> None:
        while self.queue:
            self.plan()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["plan", "plan", "plan", "answer", "answer", "stall", "edit"]),
        st.sampled_from(NODES),
    ),
    max_size=80,
)


@given(st.integers(1, 3), EVENTS)
def test_every_node_follows_in_the_end(most: int, events: list[tuple[str, str]]) -> None:
    nodes = Nodes(most)
    nodes.drain()
    for event, node in events:
        if event == "plan":
            nodes.plan()
        elif event == "edit":
            nodes.edit()
        else:
            nodes.answer(node, stalls=event == "stall")
    nodes.edit()
    for _ in range(3 * len(NODES)):
        nodes.drain()
        for node in NODES:
            nodes.answer(node, stalls=False)
    assert set(nodes.followed.values()) == {nodes.newest}


@given(st.integers(1, 3), st.lists(st.sampled_from(NODES), max_size=40))
def test_never_more_than_allowed(most: int, answers: list[str]) -> None:
    nodes = Nodes(most)
    nodes.drain()
    nodes.edit()
    for node in answers:
        nodes.drain()
        assert len(nodes.unanswered) <= most
        nodes.answer(node, stalls=False)


@given(st.integers(1, 3), st.integers(0, 7), st.lists(st.sampled_from(NODES), max_size=40))
def test_none_follows_after_a_stall(most: int, before: int, answers: list[str]) -> None:
    nodes = Nodes(most)
    nodes.drain()
    nodes.edit()
    for _ in range(before):
        nodes.drain()
        for node in sorted(nodes.unanswered)[:1]:
            nodes.answer(node, stalls=False)
    nodes.drain()
    for node in sorted(nodes.unanswered)[:1]:
        nodes.answer(node, stalls=True)
        nodes.drain()
        reached = _reached(nodes.followed, nodes.newest)
        for other in answers:
            if other != node:
                nodes.answer(other, stalls=False)
            nodes.drain()
        assert _reached(nodes.followed, nodes.newest) == reached


def _reached(followed: Mapping[str, Any], generation: int) -> set[str]:
    return {node for node, one in followed.items() if one == generation}
