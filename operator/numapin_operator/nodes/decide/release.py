"""How long a node keeps its assignment after its policy went, in case the policy returns.

The time begins when an operator first sees it and is written to the assignment, where the next
operator finds it. A policy that wants the node again, able to be put in force or not, ends it:
what is then still written counts no more, and the next release has its whole delay.

Does no I/O.
"""

import re
from dataclasses import replace

from numapin_api.cpupolicy import CpuPolicySpec
from numapin_api.duration import (
    MAX_SECONDS,
    TIME_PATTERN,
    duration_seconds,
    epoch_seconds,
    time_text,
)
from numapin_operator.nodes.decide.decision import NodePicture
from numapin_operator.nodes.decide.memory import Moment, NodeMemory, Release
from numapin_operator.policies.status import policy_fault


def released(picture: NodePicture, memory: NodeMemory) -> NodeMemory:
    """What is remembered, with the release of the node as its picture begins, edits or ends it."""
    assignment, now = picture.assignment, picture.now
    if picture.node is None or assignment is None or assignment.spec.pools is None:
        return replace(memory, release=None, void_release=None)
    written = assignment.spec.release_at
    if is_wanted(picture):
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


def _edited(known: Release, giver: str, delay: int, now: Moment) -> Release:
    """A release under way; an edit of the policy that gives the node up can shorten it."""
    if not giver or delay == known.delay_seconds:
        return known
    if known.policy != giver:
        return replace(known, delay_seconds=delay, policy=giver)
    return _at(known.due - known.delay_seconds + delay, delay, giver, now)


def _at(due: float, delay_seconds: int, giver: str, now: Moment) -> Release:
    """A release at a monotonic time; the text has whole seconds, and is never too early."""
    return Release(due, time_text(now.unix + (due - now.monotonic)), delay_seconds, giver)


def _parsed(written: str | None) -> int | None:
    """A time of an assignment in seconds since 1970; None if it is no time."""
    if written is None or re.match(TIME_PATTERN, written) is None:
        return None
    seconds = epoch_seconds(written)
    is_real = written >= "0001" and time_text(seconds) == written
    return seconds if is_real else None
