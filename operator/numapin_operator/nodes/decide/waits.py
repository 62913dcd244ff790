"""What time alone decides of a node: waits that begin, that end, and when the next one does.

Does no I/O.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_operator.nodes.decide.decision import Decision, NodePicture
from numapin_operator.nodes.decide.memory import Moment, NodeMemory
from numapin_operator.nodes.decide.release import released
from numapin_operator.policies.status import NodeOutcome, Phase

ENFORCER_SECONDS: Final = 300.0
"""An enforcer that has not answered for so long is not waited for any more."""

_WAITING: Final = (Reason.WAITING_FOR_TOPOLOGY, Reason.WAITING_FOR_ENFORCER)


def with_waits(picture: NodePicture) -> NodePicture:
    """The picture with the waits that it begins or ends.

    They count from now on, also if nothing can be written now.
    """
    return replace(picture, memory=_vanished(picture, released(picture, picture.memory)))


def _vanished(picture: NodePicture, memory: NodeMemory) -> NodeMemory:
    """Count since when a node with an assignment has no Node."""
    assignment, now = picture.assignment, picture.now
    if picture.node is not None or assignment is None or assignment.spec.pools is None:
        return replace(memory, vanished_since=None)
    if now is None or memory.vanished_since is not None:
        return memory
    return replace(memory, vanished_since=now.monotonic)


def with_times(picture: NodePicture, decision: Decision) -> Decision:
    """The decision with the wait for the enforcer, and when to decide again by all waits."""
    now = picture.now
    if now is None:
        return decision
    since = _unanswered_since(picture, decision, now)
    over_at = None if since is None else since + ENFORCER_SECONDS
    is_overdue = over_at is not None and over_at <= now.monotonic
    outcome = decision.outcome
    if is_overdue and outcome is not None and not picture.turn_wait:
        outcome = _not_served(outcome)
    times = _times(picture, decision, None if is_overdue else over_at)
    return replace(
        decision,
        outcome=outcome,
        again_at=min(times, default=None),
        overdue=is_overdue and decision.releasing,
        memory=NodeMemory(
            release=picture.memory.release,
            void_release=picture.memory.void_release,
            vanished_since=picture.memory.vanished_since,
            unanswered_since=since,
            waiting=frozenset(one.pod.uid for one in decision.waiting),
        ),
    )


def _unanswered_since(picture: NodePicture, decision: Decision, now: Moment) -> float | None:
    """Since when the node's enforcer is waited for, once the decision is written.

    An edit of the policy does not begin the wait again. While the node waits for its turn, nothing
    is known of it.
    """
    since, outcome = picture.memory.unanswered_since, decision.outcome
    if decision.releasing or (
        outcome is not None and outcome.reason in _WAITING and not picture.turn_wait
    ):
        return now.monotonic if since is None else since
    return since if picture.turn_wait else None


def _not_served(outcome: NodeOutcome) -> NodeOutcome:
    """The outcome on a node that is counted apart; it is planned and written as before."""
    message = f"{outcome.message}, for {ENFORCER_SECONDS / 60:.0f} minutes"
    return replace(
        outcome, phase=Phase.NOT_SERVED, reason=Reason.NO_ENFORCER.value, message=message
    )


def _times(
    picture: NodePicture, decision: Decision, enforcer_over_at: float | None
) -> Iterator[float]:
    """When time alone changes what is decided."""
    release, now = picture.memory.release, picture.now
    assert now is not None
    times = (decision.again_at, picture.claims_due, enforcer_over_at)
    yield from (at for at in times if at is not None)
    if release is not None and release.due > now.monotonic:
        yield release.due
