"""What is decided of a paused node: nothing changes there.

Does no I/O.
"""

from dataclasses import replace

from numapin_api.conditions.reasons import Reason
from numapin_api.schema.plain_assignment import NodeAssignmentSpec
from numapin_operator.nodes.decide.decision import Decision, NodePicture, OnPausedNode, Write
from numapin_operator.policies.status import NodeOutcome, not_served


def unless_paused(picture: NodePicture, decision: Decision) -> Decision:
    """A decision; on a paused node the one to leave everything as it is.

    An assignment that was deleted is made again as it was: its enforcer would release the node.
    """
    if picture.node is None or not (why := picture.node.paused):
        return decision
    is_lost = picture.assignment is None and picture.lost is not None
    return Decision(
        Write.CREATE if is_lost else Write.NOTHING,
        picture.lost if is_lost else None,
        _outcome(picture, why),
        tuple(_undecided(picture, decision, why)),
    )


def _outcome(picture: NodePicture, why: str) -> NodeOutcome | None:
    """The outcome of the policy that governs the node; None if none does."""
    if not picture.ranked:
        return None
    outcome = not_served(picture.ranked[0], picture.name, Reason.NODE_PAUSED, why)
    assignment = picture.assignment
    return replace(outcome, refused=assignment.spec.refused_count) if assignment else outcome


def _undecided(picture: NodePicture, decision: Decision, why: str) -> list[OnPausedNode]:
    """The pods about which something would be decided for the first time."""
    uids = {one.pod.uid for one in decision.waiting}
    if decision.spec is not None:
        uids |= _decided(decision.spec)
    if picture.assignment is not None:
        uids -= _decided(picture.assignment.spec)
    return [OnPausedNode(pod, why) for pod in picture.pods if pod.uid in uids]


def _decided(spec: NodeAssignmentSpec) -> set[str]:
    placed = {one.pod_uid for one in spec.containers}
    return placed | {one.pod_uid for one in spec.refused}
