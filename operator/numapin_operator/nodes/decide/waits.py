"""What time alone decides of a node: waits that begin, that end, and when the next one does.

Does no I/O.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Final

from numapin_api.conditions.reasons import Reason
from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import (
    MAX_SECONDS,
    TIME_PATTERN,
    duration_seconds,
    epoch_seconds,
    time_text,
)
from numapin_operator.nodes.decide.decision import (
    DEVICES_SECONDS,
    Decision,
    Moment,
    NodeMemory,
    NodePicture,
    Release,
)
from numapin_operator.placement import (
    AwaitsDevices,
    NodeDevices,
    PodView,
    is_driver,
    numa_mask,
    pod_cpus,
)
from numapin_operator.policies.status import NodeOutcome, Phase, policy_fault

ENFORCER_SECONDS: Final = 300.0
"""An enforcer that has not answered for so long is not waited for any more."""

_WAITING: Final = (Reason.WAITING_FOR_TOPOLOGY, Reason.WAITING_FOR_ENFORCER)


def with_waits(picture: NodePicture) -> NodePicture:
    """The picture with the waits that it begins or ends.

    They count from now on, also if nothing can be written now.
    """
    memory = _vanished(picture, released(picture, picture.memory))
    return replace(picture, memory=_asking(picture, memory))


def _asking(picture: NodePicture, memory: NodeMemory) -> NodeMemory:
    """Count since when containers may start of new pods that request devices, once for each."""
    now, since = picture.now, memory.asking_since
    asking = asking_for_devices(picture)
    if now is None or not (asking or since):
        return memory
    begun = {
        pod.uid: min(since.get(pod.uid, inf), now.monotonic if pod.sandboxed else inf)
        for pod in asking
    }
    return replace(memory, asking_since=begun)


def asking_for_devices(picture: NodePicture) -> tuple[PodView, ...]:
    """The new pods whose places depend on devices that they have been given.

    Those about which a decision was made stay as they are.
    """
    assignment = picture.assignment
    status = assignment.status.devices if assignment is not None else None
    if assignment is None or status is None or not picture.ranked:
        return ()
    policy, spec = picture.ranked[0].spec, assignment.spec
    if policy.topology.policy == "None":
        return ()
    names = {row.resource for row in status.resources}
    asking = [pod for pod in picture.pods if _heeds_devices(policy, pod, names)]
    if not asking:
        return ()
    decided = {one.pod_uid for one in spec.containers} | {one.pod_uid for one in spec.refused}
    return tuple(pod for pod in asking if pod.uid not in decided)


def lacking_devices(picture: NodePicture) -> Mapping[str, tuple[str, ...]]:
    """The resources of which it is not known which devices new pods have, by UID."""
    asking, assignment = picture.memory.asking_since, picture.assignment
    topology = assignment.topology if assignment is not None else None
    if not asking or assignment is None or topology is None:
        return {}
    everywhere = numa_mask(one.id for one in topology.numa_nodes)
    if assignment.status.devices is None:
        return {}
    devices = NodeDevices(assignment.status.devices, everywhere)
    found = ((pod.uid, devices.lacks(pod)) for pod in picture.pods if pod.uid in asking)
    return {uid: lacks for uid, lacks in found if lacks}


def _heeds_devices(policy: CpuPolicySpec, pod: PodView, resources: Collection[str]) -> bool:
    """Whether a pod requests devices near which it would be placed."""
    asked = (name for one in pod.containers for name, _ in one.devices)
    if not any(name in resources or is_driver(name) for name in asked):
        return False
    eligible = pod.selected and pod.qos in policy.pods.qos_classes
    asks = bool(pod_cpus(pod)) or policy.memory.policy != "None"
    return eligible and asks and not (pod.terminal or pod.deleting or pod.claims_unknown)


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
    if is_overdue and outcome is not None and not picture.turn.wait:
        outcome = _not_served(outcome)
    times = _times(picture, decision, None if is_overdue else over_at)
    return replace(
        decision,
        outcome=outcome,
        again_at=min(times, default=None),
        overdue=is_overdue and decision.releasing,
        memory=replace(
            picture.memory,
            unanswered_since=since,
            waiting=frozenset(one.pod.uid for one in decision.told_waiting),
            defect="",
        ),
    )


def _unanswered_since(picture: NodePicture, decision: Decision, now: Moment) -> float | None:
    """Since when the node's enforcer is waited for, once the decision is written.

    An edit of the policy does not begin the wait again. While the node waits for its turn, nothing
    is known of it.
    """
    since, outcome = picture.memory.unanswered_since, decision.outcome
    if decision.releasing or (
        outcome is not None and outcome.reason in _WAITING and not picture.turn.wait
    ):
        return now.monotonic if since is None else since
    return since if picture.turn.wait else None


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
    waiting = (one.pod.uid for one in decision.waiting if isinstance(one, AwaitsDevices))
    since = (picture.memory.asking_since[uid] for uid in waiting)
    yield from (at + DEVICES_SECONDS for at in since if at < inf)
    if release is not None and release.due > now.monotonic:
        yield release.due


def released(picture: NodePicture, memory: NodeMemory) -> NodeMemory:
    """What is remembered, with the release of the node as its picture begins, edits or ends it.

    The time begins when an operator first sees it and is written to the assignment, where the next
    operator finds it. A policy that wants the node again, able to be put in force or not, ends it,
    and so does a pause of the node: what is then still written counts no more, and the next release
    has its whole delay.
    """
    assignment, now = picture.assignment, picture.now
    if picture.node is None or assignment is None or assignment.spec.pools is None:
        return replace(memory, release=None, void_release=None)
    written = assignment.spec.release_at
    if is_wanted(picture) or picture.node.paused:
        return replace(memory, release=None, void_release=written or memory.void_release)
    if now is None:
        return memory
    return replace(memory, release=_release(picture, memory, written, now))


def is_wanted(picture: NodePicture) -> bool:
    """Whether a policy wants the node; one that is stalled by a fault of its own does."""
    if not picture.ranked:
        return False
    governing = picture.ranked[0]
    return governing.spec.mode != "None" or policy_fault(governing) is not None


def _release(picture: NodePicture, memory: NodeMemory, written: str | None, now: Moment) -> Release:
    """When the node's assignment goes: as before, by what is written there, or from now on."""
    giver = next((one.uid for one in picture.ranked), "")
    delay = duration_seconds(picture.release_delay or CpuPolicySpec().release_delay)
    if known := memory.release:
        return _edited(known, giver, delay, now)
    announced = _parsed(written)
    if written is None or announced is None or written == memory.void_release:
        return _at(now.monotonic + delay, delay, giver, now)
    left_seconds = max(0.0, announced - now.unix)
    # The policy whose delay was announced may never have been seen here.
    most_seconds = delay if giver else MAX_SECONDS
    due = now.monotonic + min(left_seconds, most_seconds)
    return Release(due, written, delay, giver)


def _edited(known: Release, giver: str, delay: float, now: Moment) -> Release:
    """A release under way; an edit of the policy that gives the node up can shorten it."""
    if not giver or delay == known.delay_seconds:
        return known
    if known.policy != giver:
        return replace(known, delay_seconds=delay, policy=giver)
    return _at(known.due - known.delay_seconds + delay, delay, giver, now)


def _at(due: float, delay_seconds: float, giver: str, now: Moment) -> Release:
    """A release at a monotonic time; the text has whole seconds, and is never too early."""
    return Release(due, time_text(now.unix + (due - now.monotonic)), delay_seconds, giver)


def _parsed(written: str | None) -> int | None:
    """A time of an assignment in seconds since 1970; None if it is no time."""
    if written is None or re.match(TIME_PATTERN, written) is None:
        return None
    seconds = epoch_seconds(written)
    is_real = written >= "0001" and time_text(seconds) == written
    return seconds if is_real else None
