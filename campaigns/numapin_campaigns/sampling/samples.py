"""Pure: what a chaos run writes down: suspicious anomalies and hand-made changes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey


class AnomalyKind(StrEnum):
    """What an anomaly looks like."""

    OVERLAP = "Overlap"
    """A CPU of a container reported exclusive is in the set of another one that has a task."""
    TWO_EXCLUSIVE = "TwoExclusive"
    """Two containers that have tasks share a CPU, and neither has a CPU of the shared pool."""
    LOST_PIN = "LostPin"
    """A container reported exclusive runs, and its set is not the one in the assignment."""
    THREAD = "Thread"
    """A thread may use a CPU of a container reported exclusive, and its own cgroup may not.

    The kernel does not keep threads of io_uring to their cgroup.
    """


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One sample in which the kernel differed from what was reported.

    Attributes:
        at: monotonic seconds, just before the kernel was read.
        kind: how it differed.
        container: the exclusive container.
        path: the cgroup with the wrong set, below kubepods.
        found: its set, or that of the thread, as a bit mask.
        seen_at: when that cgroup was first seen; for a thread: since when each look has found such
            a thread in the cgroup, later by the time in which nothing was exclusive.
        other: for two exclusive containers: the other cgroup; for a thread: its name.
        started: whether the container's program has started; before that, only the process of the
            runtime that sets it up is in the cgroup.
        until: just after the kernel was read.
    """

    at: float
    kind: AnomalyKind
    container: ContainerKey
    path: str
    found: int
    seen_at: float
    other: str = ""
    started: bool = True
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Overwrite:
    """One cpuset that the run overwrote.

    Attributes:
        fault: its kind.
        path: the cgroup, below kubepods.
        value: what was written, as a bit mask.
        written_at: just before the write.
        ended_at: when another value was read or the cgroup was gone; None if never.
        outcome: `Reverted`, `Removed` (the cgroup), `Intended` (by the newest spec), or `Remained`.
        enforcer_up: whether the enforcer ran all that time.
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
        """How long the value remained; infinite if it still does."""
        return float("inf") if self.ended_at is None else self.ended_at - self.written_at


@dataclass(frozen=True, slots=True)
class Seen:
    """A cgroup that had a task at some time; `gone_at` is None while it exists."""

    path: str
    pod_uid: str
    container: str
    seen_at: float
    gone_at: float | None


@dataclass(frozen=True, slots=True)
class Samples:
    """Everything that the sampler recorded.

    `with_exclusive` counts the samples in which a container that was reported exclusive had a task,
    and `exclusive_seen` has these containers: how many samples there are depends on the machine.
    """

    count: int
    with_exclusive: int
    exclusive_seen: frozenset[ContainerKey]
    seconds: float
    longest_gap_seconds: float
    gap_p99_seconds: float
    anomalies: tuple[Anomaly, ...]
    versions: tuple[AssignmentVersion, ...]
    seen: tuple[Seen, ...]

    def to_json(self) -> dict[str, Any]:
        """The counts and gaps, without the lists."""
        return {
            "samples": self.count,
            "samplesWithExclusive": self.with_exclusive,
            "exclusiveContainersSeen": len(self.exclusive_seen),
            "seconds": round(self.seconds, 1),
            "longestGapSeconds": round(self.longest_gap_seconds, 4),
            "gapP99Seconds": round(self.gap_p99_seconds, 4),
        }
