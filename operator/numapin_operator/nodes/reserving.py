"""Places for pods that wait for a node: what a node's plan is with them.

Does no I/O.
"""

from dataclasses import replace

from numapin_api.schema.plain_assignment import NodeAssignmentSpec, Refusal
from numapin_operator.nodes.decide.decide import decide
from numapin_operator.nodes.decide.decision import Decision, NodePicture
from numapin_operator.placement import PodView


def decide_with_wishes(picture: NodePicture) -> tuple[NodePicture, Decision]:
    """Decide with each pod that is to have a place and gets one; none that gets none is refused.

    Returns:
        The picture with the pods that have a place, and what is decided by it.
    """
    decision: Decision | None = None
    for wish in picture.wishes:
        trial, tried_decision = tried(picture, wish)
        if has_place(trial, tried_decision, wish.uid):
            picture, decision = trial, tried_decision
    return picture, decision or decide(picture)


def tried(picture: NodePicture, pod: PodView) -> tuple[NodePicture, Decision]:
    """What would be decided with another pod, which comes after all others."""
    others = tuple(one for one in picture.pods if one.uid != pod.uid)
    last = replace(pod, bound=f"{pod.bound}{len(others):06}")
    trial = replace(picture, pods=(*others, last))
    return trial, decide(trial)


def has_place(picture: NodePicture, decision: Decision, uid: str) -> bool:
    """Whether a pod has lines in what the node's assignment says after the decision."""
    return any(one.pod_uid == uid for one in spec_after(picture, decision).containers)


def refusal_of(picture: NodePicture, decision: Decision, uid: str) -> Refusal | None:
    """Why a pod has no place; None if nothing refuses it."""
    refused = spec_after(picture, decision).refused
    return next((one for one in refused if one.pod_uid == uid), None)


def spec_after(picture: NodePicture, decision: Decision) -> NodeAssignmentSpec:
    """What a node's assignment says once a decision is written."""
    if decision.spec is not None:
        return decision.spec
    return picture.assignment.spec if picture.assignment else NodeAssignmentSpec()
