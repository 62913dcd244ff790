"""What the operator would write: its own decision about nodes that are only described."""

from dataclasses import dataclass, replace
from typing import Final

from numapin_api.conditions.merging import merge_conditions
from numapin_api.conditions.reasons import ConditionType, Reason, Verdict
from numapin_api.schema.plain_assignment import Condition, NodeAssignmentSpec
from numapin_cli.printable import printable
from numapin_operator.nodes.decide import Decision, NodePicture, Write, decide
from numapin_operator.nodes.picture import picture_of
from numapin_operator.observe.assignments.view import AssignmentView
from numapin_operator.observe.cache import ClusterState
from numapin_operator.policies.status import NodeOutcome, Phase

_NEVER: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The next write to one node's assignment, and what comes of it.

    Attributes:
        picture: what the decision depends on.
        decision: the operator's.
        spec: the spec after the write; None if there is no assignment then.
        outcome: of the governing policy, once the enforcer has done all that the spec says; None
            if no policy governs the node.
    """

    picture: NodePicture
    decision: Decision
    spec: NodeAssignmentSpec | None
    outcome: NodeOutcome | None

    @property
    def before(self) -> NodeAssignmentSpec | None:
        """The spec before the write; None if there is no assignment yet."""
        assignment = self.picture.assignment
        return assignment.spec if assignment is not None and assignment.version else None

    @property
    def write(self) -> Write:
        """The write; an assignment that is only described is created."""
        replaces = self.decision.write is Write.REPLACE and self.before is None
        return Write.CREATE if replaces else self.decision.write

    @property
    def is_stalled(self) -> bool:
        """Whether the policy cannot be put in force on the node until a person acts."""
        return self.outcome is not None and self.outcome.phase is Phase.STALLED

    @property
    def said(self) -> str:
        """The outcome's reason and message on one line; empty if no policy governs the node.

        An enforcer may report any text, so what a terminal would obey is escaped.
        """
        if self.outcome is None:
            return ""
        return printable(f"{self.outcome.reason}: {self.outcome.message}")


def foresee(state: ClusterState, node: str, now: float | None = None) -> Foreseen:
    """Decide about one node as the operator does at `now`, and about what follows from its write.

    The time is in seconds since 1970; without it, no move begins or goes on. Where a pod of the
    node has the annotation that says which CPUs it has, workloads get notice, and all that have it
    count as notified of what leaves them.
    """
    picture = picture_of(state, node)
    told = {pod.uid: 0.0 for pod in picture.pods if pod.annotated}
    return foresee_from(replace(picture, told=told or None).at(now))


def foresee_from(picture: NodePicture) -> Foreseen:
    """Decide about a node by all that its decision depends on, and about what follows."""
    decision = decide(picture)
    if decision.write is Write.DELETE:
        return Foreseen(picture, decision, None, decision.outcome)
    after = followed(picture, decision)
    if after is None or decision.spec is None:
        present = picture.assignment
        exists = present is not None and present.version
        spec = present.spec if present is not None and exists else decision.spec
        return Foreseen(picture, decision, spec, decision.outcome)
    settled = decide(replace(picture, assignment=after))
    return Foreseen(picture, decision, decision.spec, settled.outcome)


def followed(picture: NodePicture, decision: Decision) -> AssignmentView | None:
    """The assignment after a write, when the enforcer has reported that all of it is in force.

    None if there is none to begin with. Every pod of the node runs then.
    """
    before, node = picture.assignment, picture.node
    if before is None or node is None or decision.spec is None:
        return before
    generation = before.generation + 1
    verdicts = (
        Verdict(ConditionType.READY, True, Reason.ENFORCED),
        Verdict(ConditionType.STALLED, False, Reason.NOT_STALLED),
    )
    known = (one.to_wire() for one in before.status.conditions)
    conditions = merge_conditions(known, verdicts, generation, _NEVER)
    return replace(
        before,
        spec=decision.spec,
        generation=generation,
        owner_uid=node.uid,
        status=replace(
            before.status,
            observed_generation=generation,
            conditions=tuple(map(Condition.from_wire, conditions)),
        ),
    )
