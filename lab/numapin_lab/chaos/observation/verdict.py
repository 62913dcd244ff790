"""Pure: which of the moments that the sampler wrote down are faults of numapin's, and which not."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from numapin_lab.chaos.observation.assignment_versions import Owner, Version
from numapin_lab.chaos.observation.samples import Downtime, Moment, Overwrite, Suspicion


class Excuse(StrEnum):
    """Why a moment is not a violation."""

    BY_HAND = "ByHand"
    """The cgroup has what the run wrote into it, or above it before it came, and not yet more."""
    WITHDRAWN = "Withdrawn"
    """The enforcer had taken a spec that lists the owner no more; it had not been seen here yet."""
    UNFENCED_BIRTH = "UnfencedBirth"
    """A cgroup of a Guaranteed pod, born while the enforcer was dead, whose program has not begun.

    It stands beside the QoS classes: it has what kubepods has until the standby has seen it.
    """
    NOT_BEGUN = "NotBegun"
    """A new container of the owner's own pod, in which the runtime's own process is and no other.

    It is born with what its pod has, the owner's CPUs too, and narrowed before its program begins.
    """


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else is known of the run.

    `taken` is when the enforcer said that it had taken which generation, in order.
    """

    overwrites: Sequence[Overwrite]
    downtimes: Sequence[Downtime]
    taken: Sequence[tuple[float, int]]
    versions: Sequence[Version]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Every moment, judged."""

    violations: tuple[Moment, ...]
    excused: tuple[tuple[Excuse, Moment], ...]


def judge(moments: Iterable[Moment], evidence: Evidence) -> Verdict:
    """Tell violations from what the run did itself and what nobody promised."""
    listed = {version.generation: version.owners() for version in evidence.versions}
    violations: list[Moment] = []
    excused: list[tuple[Excuse, Moment]] = []
    for moment in moments:
        if (excuse := _excuse(moment, evidence, listed)) is None:
            violations.append(moment)
        else:
            excused.append((excuse, moment))
    return Verdict(tuple(violations), tuple(excused))


def _excuse(
    moment: Moment, evidence: Evidence, listed: dict[int, frozenset[Owner]]
) -> Excuse | None:
    if any(_by_hand(moment, one) for one in evidence.overwrites):
        return Excuse.BY_HAND
    reported = moment.kind is not Suspicion.TWO_OWNERS  # which is the kernel's word alone
    if reported and _withdrawn(moment, evidence.taken, listed):
        return Excuse.WITHDRAWN
    if any(_unfenced(moment, one) for one in evidence.downtimes):
        return Excuse.UNFENCED_BIRTH
    return Excuse.NOT_BEGUN if _not_begun(moment) else None


def _by_hand(moment: Moment, one: Overwrite) -> bool:
    end = float("inf") if one.ended_at is None else one.ended_at
    if moment.at > end or max(moment.at, moment.until) < one.written_at:
        return False
    if moment.path == one.path:
        return moment.found == one.value
    if moment.other == one.path:
        return True
    inherited = moment.path.startswith(f"{one.path}/") and moment.born_at >= one.written_at
    return inherited and moment.found == one.value


def _withdrawn(
    moment: Moment, taken: Sequence[tuple[float, int]], listed: dict[int, frozenset[Owner]]
) -> bool:
    """Whether the newest spec that the enforcer had taken then lists the owner no more.

    A generation that was never seen here (a list after a break skips some) is as the next one.
    """
    index = bisect_right(taken, (moment.at, 1 << 62))
    if index == 0:
        return False
    generation = taken[index - 1][1]
    known = [one for one in listed if one >= generation]
    return bool(known) and moment.owner not in listed[min(known)]


def _not_begun(moment: Moment) -> bool:
    of_its_pod = f"pod{moment.owner[0]}" in moment.path.split("/")
    return moment.kind is Suspicion.OVERLAP and of_its_pod and not moment.begun


def _unfenced(moment: Moment, down: Downtime) -> bool:
    guaranteed = moment.path.startswith("pod")
    born = down.killed_at <= moment.born_at <= down.ready_at
    seen = moment.begun or moment.at > down.ready_at
    return down.part == "enforcer" and guaranteed and born and not seen
