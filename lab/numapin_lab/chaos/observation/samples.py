"""Pure: what a chaos run writes down: suspicious moments, hand-made changes, times of death."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numapin_lab.chaos.observation.assignment_versions import Owner, Version


class Suspicion(StrEnum):
    """What a moment looks like."""

    OVERLAP = "Overlap"
    """A CPU of a container reported exclusive is in the set of another that has a task."""
    TWO_OWNERS = "TwoOwners"
    """Two containers that have tasks stand on nothing but the same CPU outside the shared pool."""
    LOST_PIN = "LostPin"
    """A container reported exclusive runs, and its set is not what the assignment says."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One sample in which the kernel was not as reported.

    Attributes:
        at: monotonic seconds, just before it was looked.
        kind: what it looks like.
        owner: whose CPUs these are.
        path: the cgroup that is not as it should be, below kubepods.
        found: its set as a bit mask.
        born_at: when that cgroup was first seen.
        other: for two owners: the other cgroup.
        begun: whether the container's program has begun; before, only the runtime's own process is
            in the cgroup, which sets the container up.
        until: just after it was looked: the kernel was so at some time from `at` to then.
    """

    at: float
    kind: Suspicion
    owner: Owner
    path: str
    found: int
    born_at: float
    other: str = ""
    begun: bool = True
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Overwrite:
    """One cpuset that the run wrote itself.

    Attributes:
        fault: which kind.
        path: the cgroup, below kubepods.
        value: what was written, as a bit mask.
        written_at: just before the write.
        ended_at: when it was seen to be something else, or gone; None if never.
        outcome: `Repaired`, `Vanished` (the cgroup went), `Meant` (the spec means it by now), or
            `Kept`.
        enforcer_up: whether the enforcer ran all the while.
    """

    fault: str
    path: str
    value: int
    written_at: float
    ended_at: float | None
    outcome: str
    enforcer_up: bool

    @property
    def seconds(self) -> float:
        """How long it lasted; endless if it still does."""
        return float("inf") if self.ended_at is None else self.ended_at - self.written_at


@dataclass(frozen=True, slots=True)
class Downtime:
    """A part that was killed: from just before that until it does its work again."""

    part: str
    killed_at: float
    ready_at: float


@dataclass(frozen=True, slots=True)
class Seen:
    """A cgroup that had a task at some time; `gone_at` is None while it is there."""

    path: str
    pod_uid: str
    container: str
    born_at: float
    gone_at: float | None


@dataclass(frozen=True, slots=True)
class Samples:
    """Everything that the sampler saw.

    `owned` counts the samples in which a container that was reported exclusive had a task.
    """

    count: int
    owned: int
    seconds: float
    longest_gap_seconds: float
    gap_p99_seconds: float
    moments: tuple[Moment, ...]
    versions: tuple[Version, ...]
    seen: tuple[Seen, ...]

    def to_json(self) -> dict[str, Any]:
        """The figures, without the lists."""
        return {
            "samples": self.count,
            "ownedSamples": self.owned,
            "seconds": round(self.seconds, 1),
            "longestGapSeconds": round(self.longest_gap_seconds, 4),
            "gapP99Seconds": round(self.gap_p99_seconds, 4),
        }
