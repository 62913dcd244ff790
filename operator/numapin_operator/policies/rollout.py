"""When each node follows its policy: a few at a time, and none after one is stalled.

Does no I/O.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain_assignment import PolicyRef
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.records import PolicyView
from numapin_operator.observe.revisions import as_of
from numapin_operator.policies.in_force import (
    as_written,
    followed,
    has_answered,
    is_of,
    is_state,
    refuses,
)
from numapin_operator.policies.sharing.claims import NO_DEMAND, Demand, Sharing
from numapin_operator.policies.status import NodeOutcome, Phase, policy_fault
from numapin_operator.policies.turns import Turns, node_limit


@dataclass(frozen=True, slots=True)
class Turn:
    """By which policy a node is planned now.

    Attributes:
        policy: None if no policy governs the node.
        wait: why the node does not follow the governing policy yet; empty if it does.
    """

    policy: PolicyView | None
    wait: str = ""


NO_TURN: Final = Turn(None)


class Rollout:
    """Gives nodes their turn to follow the policy that governs them.

    A node changes when its NodeAssignment comes to have another policy, another generation of it or
    another object of its name, for whatever reason, and until its enforcer has accepted that. A
    node without settings in force needs no turn, and neither does one that gets mode None. A node
    whose own enforcer refuses what is written changes at once, because it cannot lose anything. A
    paused node has no turn, and takes none from others.

    The NodeAssignments and the policies' statuses tell a new operator which nodes are changing, and
    which are stalled by it.
    """

    def __init__(
        self,
        wake: Callable[[str], object],
        state: ClusterState,
        sharing: Sharing | None = None,
    ) -> None:
        """Know no node yet.

        Args:
            wake: called with each node whose turn has come.
            state: the cluster as observed.
            sharing: how several operators share the limits; None if this one governs all nodes.
        """
        self._wake, self._state, self._sharing = wake, state, sharing
        if sharing is not None:
            sharing.demand, sharing.call = self._demand, self._call
        self._turns: dict[str, Turns] = {}
        self._policy_of: dict[str, str] = {}
        self._applied: dict[str, PolicyView] = {}
        """By what each node was planned last, other than while it waits."""
        self._refused: set[str] = set()
        """Nodes that changed at once because their enforcer refused what they had."""

    def admit(self, node: str) -> None:
        """Take in what is known of a node now, and give it its turn if there is room."""
        governing = self._state.governing(node)
        assignment = self._state.assignments.get(node)
        following = followed(assignment)
        if following is None:
            self._applied.pop(node, None)
        if governing is None or self._state.is_paused(node):
            self._leave(node)
            return
        turns = self._join(node, governing)
        if following is None or assignment is None or self._follows(node, governing, following):
            turns.skip(node)
        elif refuses(assignment):
            turns.skip(node)
            self._refused.add(node)
        else:
            turns.note(node, is_changing=self._is_changing(node))
            self._note_arrivals(turns, governing)
            turns.admit(node, self._limit(governing))

    def turn(self, node: str) -> Turn:
        """By which policy a node is planned, as it was admitted last."""
        governing = self._state.governing(node)
        assignment = self._state.assignments.get(node)
        following = followed(assignment)
        if governing is None or assignment is None or following is None:
            return Turn(governing)
        turns = self._turns.get(governing.name)
        if turns is None or not turns.is_waiting(node):
            return Turn(governing)
        return Turn(self._before(node, governing, assignment, following), self._why(governing))

    def settle(self, node: str, turn: Turn, outcome: NodeOutcome | None) -> None:
        """Take in the outcome of a plan, after it was written."""
        name, policy = self._policy_of.get(node, ""), turn.policy
        turns = self._turns.get(name)
        if outcome is None or policy is None or turns is None or turn.wait or policy_fault(policy):
            return
        is_stalled = outcome.phase is Phase.STALLED
        unanswered = outcome.reason == Reason.WAITING_FOR_ENFORCER or (
            outcome.phase is Phase.UNDER_WAY and self._is_changing(node)
        )
        self._note_applied(node, policy, is_stalled=is_stalled)
        turns.forget(node)
        if node in self._refused:
            if not (is_stalled or unanswered):
                self._refused.discard(node)
        elif turns.state != (policy.uid, policy.generation):
            turns.note(node, is_changing=unanswered)  # it was edited meanwhile
        elif unanswered:
            turns.change(node)
        elif is_stalled:
            turns.stalled.add(node)
        self._call(name)

    def stall(self, node: str) -> None:
        """Take in that a node could not be planned or written."""
        turns = self._turns.get(self._policy_of.get(node, ""))
        if turns is not None and not turns.is_waiting(node):
            turns.forget(node)
            turns.stalled.add(node)

    def _follows(self, node: str, governing: PolicyView, following: PolicyRef) -> bool:
        """Whether a node follows the governing policy, or needs no turn to do so."""
        if governing.spec.mode == "None" or policy_fault(governing):
            return True
        if (applied := self._applied_on(node, following)) is not None:
            return (applied.uid, applied.generation) == (governing.uid, governing.generation)
        done = self._state.revisions.newest(governing)
        has_all = done is not None and done.generation == governing.generation
        return is_state(following, governing) or (has_all and is_of(following, governing))

    def _applied_on(self, node: str, following: PolicyRef) -> PolicyView | None:
        """By what a node was planned; it need not be written where it changed nothing."""
        applied = self._applied.get(node)
        return applied if applied is not None and applied.name == following.name else None

    def _note_applied(self, node: str, policy: PolicyView, *, is_stalled: bool) -> None:
        """Remember by what a node is planned, if that is in force there now."""
        assignment = self._state.assignments.get(node)
        following = followed(assignment)
        if assignment is None or following is None or assignment.topology is None:
            return
        was_written = not is_stalled or refuses(assignment)
        if was_written and policy.spec.mode != "None" and policy.name == following.name:
            self._applied[node] = policy

    def _join(self, node: str, governing: PolicyView) -> Turns:
        """The turns of the policy that governs a node."""
        turns = self._turns.get(governing.name)
        if turns is None or turns.state != (governing.uid, governing.generation):
            turns = self._turns[governing.name] = self._found(governing)
        if self._policy_of.get(node) != governing.name:
            self._leave(node)
            self._policy_of[node] = governing.name
        return turns

    def _note_arrivals(self, turns: Turns, governing: PolicyView) -> None:
        """Count nodes that came from other policies while they change, and are planned later."""
        governed = self._state.governed_nodes(governing.name)
        for other in self._turns.values():
            if other is not turns:
                for node in other.changing & governed:
                    turns.note(node, is_changing=True)

    def _leave(self, node: str) -> None:
        """A node comes under another policy, or under none."""
        if (before := self._policy_of.pop(node, None)) is not None:
            self._turns[before].forget(node)
            self._call(before)

    def _found(self, policy: PolicyView) -> Turns:
        """The turns of a policy as the objects show them."""
        turns = Turns((policy.uid, policy.generation))
        governed = self._state.governed_nodes(policy.name)
        for node in governed:
            if self._state.is_paused(node):
                continue
            assignment, is_changing = self._state.assignments.get(node), self._is_changing(node)
            turns.note(node, is_changing=is_changing)
            following = followed(assignment)
            if assignment is None or following is None or not is_state(following, policy):
                continue
            if is_changing:
                turns.change(node)
            elif refuses(assignment):
                turns.stalled.add(node)
        if policy.status.observed_generation == policy.generation:
            turns.stalled.update(one.node for one in policy.status.stalled if one.node in governed)
        return turns

    def _is_changing(self, node: str) -> bool:
        """Whether a node that is waited for has settings that its enforcer has not answered."""
        assignment, view = self._state.assignments.get(node), self._state.nodes.get(node)
        if assignment is None or followed(assignment) is None or has_answered(assignment):
            return False
        return view is not None and view.not_served is None

    def _call(self, name: str) -> None:
        policy, turns = self._state.policies.get(name), self._turns.get(name)
        if policy is not None and turns is not None:
            for node in turns.call(self._limit(policy)):
                self._wake(node)

    def _limit(self, policy: PolicyView) -> int | None:
        """How many nodes may change at the same time, of those that this operator plans."""
        governed = self._state.governed(policy.name)
        if self._sharing is not None:
            return self._sharing.limit(policy, governed)
        return node_limit(policy.spec.rollout.max_concurrent, governed)

    def _limit_of_all(self, policy: PolicyView) -> int | None:
        governed = self._state.governed(policy.name)
        if self._sharing is not None:
            return self._sharing.ceiling(policy, governed)
        return self._limit(policy)

    def _demand(self, name: str) -> Demand:
        """What turns of several operators are needed for."""
        turns = self._turns.get(name)
        if turns is None:
            return NO_DEMAND
        changing = turns.changing | turns.called
        return Demand(len(changing), len(turns.waiting.keys() - changing), len(turns.stalled))

    def _why(self, policy: PolicyView) -> str:
        """What a node waits for."""
        return (
            f"{self._limit_of_all(policy)} of the nodes change at a time "
            "(spec.rollout.maxConcurrent), "
            "and none while one that has changed is stalled"
        )

    def _before(
        self, node: str, governing: PolicyView, assignment: AssignmentView, following: PolicyRef
    ) -> PolicyView:
        """The policy by which a waiting node is planned: the one that is in force there.

        A generation that changed nothing for a node is not written there, so that it may follow a
        later one than its assignment says, up to the one that has reached every node.
        """
        if (applied := self._applied_on(node, following)) is not None:
            return applied
        policy = self._state.policies.get(following.name)
        if policy is None or not is_of(following, policy):
            return as_written(governing, assignment)
        if is_state(following, policy):
            return policy
        done = self._state.revisions.newest(policy)
        if done is None or following.generation > done.generation:
            return as_written(governing, assignment)
        return as_of(policy, done)
