"""When each node follows an edited policy: a few at a time, and none after one is stalled.

Does no I/O.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import ValidationError

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.nodeassignment import PolicyRef
from numapin_api.policystatus import RolledOut
from numapin_operator.observe.records import AssignmentView, PolicyView
from numapin_operator.policies.status import NodeOutcome, Phase, policy_fault

REMEMBERED: Final = 64
"""How many generations of policies are remembered, the newest of all policies."""


@dataclass(frozen=True, slots=True)
class Turn:
    """By which policy a node is planned now.

    Attributes:
        policy: None if the assignment must stay as it is, or if no policy governs the node.
        wait: why the node does not follow the governing policy yet; empty if it does.
    """

    policy: PolicyView | None
    wait: str = ""


@dataclass(slots=True)
class _Progress:
    """The nodes of one generation of a policy.

    Attributes:
        limit: how many change at the same time; None: all.
        changing: have been given their turn, and their enforcer has not answered.
        stalled: became stalled by their turn.
        waiting: the first one is next.
        called: have been woken to take their turn.
    """

    generation: int
    limit: int | None
    changing: set[str] = field(default_factory=set)
    stalled: set[str] = field(default_factory=set)
    waiting: OrderedDict[str, None] = field(default_factory=OrderedDict)
    called: set[str] = field(default_factory=set)

    def admit(self, node: str) -> bool:
        """Whether it is a node's turn; else it waits to be called."""
        self.called.discard(node)
        self.waiting.pop(node, None)
        if node in self.stalled:
            return True
        if node in self.changing or self._free() > 0:
            self.changing.add(node)
            return True
        self.waiting[node] = None
        return False

    def call(self) -> list[str]:
        """The nodes to wake, for which there is room now."""
        room = min(max(0, self._free()), len(self.waiting))
        names = [self.waiting.popitem(last=False)[0] for _ in range(room)]
        self.called.update(names)
        return names

    def forget(self, node: str) -> None:
        """A node needs no turn any more."""
        self.changing.discard(node)
        self.stalled.discard(node)
        self.called.discard(node)
        self.waiting.pop(node, None)

    def why(self) -> str:
        """What a node waits for."""
        return (
            f"{self.limit} of the nodes change at a time (spec.rollout.maxConcurrent), "
            "and none while one that has changed is stalled"
        )

    def _free(self) -> int:
        if self.limit is None:
            return len(self.waiting) + 1
        return 0 if self.stalled else self.limit - len(self.changing) - len(self.called)


class Rollout:
    """Gives nodes their turn to follow a policy that was edited.

    A node without an assignment needs no turn, nor does one whose policy has reached every node. A
    node that was stalled before the edit gets its turn at once, because it cannot lose anything. A
    new operator learns the nodes that are changing while it plans them, so that up to twice as many
    as allowed may change then.
    """

    def __init__(
        self,
        wake: Callable[[str], object],
        policies: Mapping[str, PolicyView],
        governed: Callable[[str], int],
    ) -> None:
        """Know no policy yet.

        Args:
            wake: called with each node whose turn has come.
            policies: the policies that exist, by name.
            governed: how many nodes a policy governs, by its name.
        """
        self._wake, self._policies, self._governed = wake, policies, governed
        self._progress: dict[str, _Progress] = {}
        self._policy_of: dict[str, str] = {}
        self._stalled_before: set[str] = set()
        self._views: OrderedDict[tuple[str, int], PolicyView] = OrderedDict()

    def turn(
        self, node: str, governing: PolicyView | None, assignment: AssignmentView | None
    ) -> Turn:
        """By which policy a node is planned now."""
        if self._policy_of.get(node) != (name := governing.name if governing else None):
            self._leave(node)
        if governing is None or name is None:
            self._stalled_before.discard(node)
            return Turn(None)
        self._policy_of[node] = name
        self._remember(governing)
        progress = self._progress_of(governing)
        followed = _followed(assignment)
        if (
            followed is None
            or _follows(governing, followed)
            or node in self._stalled_before
            or progress.admit(node)
        ):
            return Turn(governing)
        return Turn(self._older(followed), progress.why())

    def settle(self, node: str, outcome: NodeOutcome | None, *, waits: bool) -> None:
        """Take in the outcome of a plan.

        Args:
            node: the node.
            outcome: that of the policy by which it was planned; None if none governs it.
            waits: whether that is an older one, because it is not the node's turn.
        """
        if outcome is None:
            return
        progress = self._progress.get(self._policy_of.get(node, ""))
        is_stalled = outcome.phase is Phase.STALLED
        if waits or progress is None:
            if is_stalled and node not in self._stalled_before:
                self._stalled_before.add(node)
                self._wake(node)
            return
        unanswered = outcome.reason == Reason.WAITING_FOR_ENFORCER
        if node in self._stalled_before:
            progress.forget(node)
            if not (is_stalled or unanswered):
                self._stalled_before.discard(node)
        elif unanswered:
            progress.changing.add(node)
        else:
            progress.forget(node)
            if is_stalled:
                progress.stalled.add(node)
        self._call(progress)

    def _leave(self, node: str) -> None:
        """A node comes under another policy, or under none."""
        if (before := self._policy_of.pop(node, None)) is not None:
            progress = self._progress[before]
            progress.forget(node)
            self._call(progress)

    def _call(self, progress: _Progress) -> None:
        for node in progress.call():
            self._wake(node)

    def _progress_of(self, policy: PolicyView) -> _Progress:
        """The state of a policy's roll-out; it begins again with each generation."""
        progress = self._progress.get(policy.name)
        if progress is None or progress.generation != policy.generation:
            if progress is not None:
                self._stalled_before |= progress.stalled
            limit = node_limit(policy.spec.rollout.max_concurrent, self._governed(policy.name))
            progress = self._progress[policy.name] = _Progress(policy.generation, limit)
        return progress

    def _remember(self, policy: PolicyView) -> None:
        key = policy.name, policy.generation
        self._views[key] = policy
        self._views.move_to_end(key)
        if len(self._views) > REMEMBERED:
            self._views.popitem(last=False)

    def _older(self, followed: PolicyRef) -> PolicyView | None:
        """The policy that a waiting node follows; None if it is not known any more.

        A generation that changed nothing for a node is not written there, so that it may follow a
        later one than its assignment says, up to the one that has reached every node.
        """
        policy = self._policies.get(followed.name)
        if policy is not None and policy.generation == followed.generation:
            return policy
        done = policy.status.rolled_out if policy else None
        if policy is None or done is None or followed.generation > done.generation:
            return self._views.get((followed.name, followed.generation))
        return self._views.get((policy.name, done.generation)) or _rolled_out(policy, done)


def node_limit(max_concurrent: str, nodes: int) -> int | None:
    """How many of a policy's nodes change at the same time; None: all of them.

    A percentage is rounded up, as that of a DaemonSet's maxUnavailable.
    """
    if max_concurrent.endswith("%"):
        limit = -(-nodes * int(max_concurrent[:-1]) // 100)
    else:
        limit = int(max_concurrent)
    return None if limit >= nodes else limit


def _followed(assignment: AssignmentView | None) -> PolicyRef | None:
    """The policy that is in force on a node; None if an edit can change nothing there."""
    if assignment is None or assignment.problem is not None or assignment.spec.mode == "None":
        return None
    return assignment.spec.policy if assignment.spec.pools is not None else None


def _follows(governing: PolicyView, followed: PolicyRef) -> bool:
    """Whether a node needs no turn for the governing policy."""
    if governing.spec.mode == "None" or policy_fault(governing):
        return True
    done = governing.status.rolled_out
    if done is not None and done.generation == governing.generation:
        return True
    return (followed.name, followed.generation) == (governing.name, governing.generation)


def _rolled_out(policy: PolicyView, done: RolledOut) -> PolicyView | None:
    """The generation of a policy that has reached every node, by its status."""
    try:
        spec = CpuPolicySpec.model_validate(done.spec)
    except ValidationError:
        return None
    return replace(policy, spec=spec, generation=done.generation, problem=None)
