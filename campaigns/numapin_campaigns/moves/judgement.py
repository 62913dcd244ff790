"""Pure: what workloads saw that must not be, and what of it is documented."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from numapin_api.cpuset import CpuSet
from numapin_campaigns.frame import judge as frame
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.workload.notice import Departure, Followed

CLOCK_SECONDS: Final = 0.5
"""How exactly a time of this machine is known on the clock of the virtual machine."""

LATE_SECONDS: Final = 10.0
"""The runtime has made an update that the enforcer sent it within that time of a change."""

BACK_SECONDS: Final = 10.0
"""The enforcer reverts within that time what the runtime has written late."""


class Kind(StrEnum):
    """What a workload saw."""

    SHARED = "Shared"
    """A CPU of a container with exclusive ones could be used by another one."""
    UNANNOUNCED = "Unannounced"
    """A CPU left that the container's file had not named before."""
    NO_CPUS = "NoCpus"
    """The kernel let it use no CPU at all."""


class Excuse(StrEnum):
    """Why it is not a violation."""

    KUBELET_LATE = "KubeletLate"
    """The API server had the annotation for the whole notice; the kubelet did not show it in time.

    docs/notice.md: "A kubelet that is later than `notice` and a second shows the file after the
    CPUs have left."
    """
    LATE_WRITE = "LateWrite"
    """For a moment it had exactly the set before its last change, and no other one's CPUs.

    The container runtime repeats what numapin sent it before. docs/operations.md, "Drift":
    "Until it has acknowledged the next set, a change to exactly that earlier set is taken for the
    runtime's." docs/notice.md: "A CPU that a container has just got can be missing for a moment."
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a workload saw. `seconds`: how long it lasted, if it was a late write."""

    kind: Kind
    pod: str
    cpus: CpuSet
    at: float
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """For people and programs; the time is that of the virtual machine's clock."""
        shown = {"kind": self.kind.value, "pod": self.pod, "cpus": str(self.cpus)}
        return {**shown, "at": round(self.at, 3)}


@dataclass(frozen=True, slots=True)
class LateWrite:
    """From `begin` to `end` a container had exactly the set before its last change again."""

    begin: float
    end: float
    missed: CpuSet
    extra: CpuSet

    def explains(self, finding: Finding) -> bool:
        """Whether this is what was found: other CPUs than its own, or its newest ones missing."""
        if finding.kind is Kind.SHARED:
            return self.begin <= finding.at <= self.end and finding.cpus <= self.extra
        if finding.kind is Kind.UNANNOUNCED:
            lost = (self.begin, self.missed), (self.end, self.extra)
            return any(finding.at == at and finding.cpus == cpus for at, cpus in lost)
        return False


@dataclass(frozen=True, slots=True)
class Announcement:
    """From `at` on, at the latest, the API server had it that these CPUs of a pod leave."""

    pod: str
    cpus: CpuSet
    at: float


@dataclass(frozen=True, slots=True)
class Witness:
    """What the workload of a pod saw, and when its container had no exclusive CPUs by the plan.

    `without`: pairs of times. In between it may share CPUs, and is not told which leave. All times
    are on the clock of the virtual machine.
    """

    pod: str
    followed: Followed
    without: Sequence[tuple[float, float]] = ()

    def is_exclusive(self, at: float) -> bool:
        """Whether its CPUs are its own then."""
        return not any(begin <= at <= end for begin, end in self.without)


def judge(
    witnesses: Sequence[Witness], announced: Sequence[Announcement], notice_seconds: float
) -> Verdict[Finding]:
    """Divide what was seen into violations and what is documented.

    Args:
        witnesses: the workloads.
        announced: what the API server had, and since when.
        notice_seconds: how long it has it at least before CPUs leave.
    """
    of_pod = {one.pod: one for one in witnesses}

    def excuse_of(finding: Finding) -> Excuse | None:
        if finding.seconds is not None:
            return Excuse.LATE_WRITE
        witness = of_pod[finding.pod]
        told = _was_told(finding, witness, announced, notice_seconds)
        return Excuse.KUBELET_LATE if told else None

    found = (one for witness in witnesses for one in _with_late_writes(witness, witnesses))
    return frame.judge(found, excuse_of)


def departures(witnesses: Sequence[Witness]) -> list[Departure]:
    """The departures of exclusive CPUs."""
    return [one for witness in witnesses for one in _departures(witness)]


def _with_late_writes(witness: Witness, witnesses: Sequence[Witness]) -> Iterator[Finding]:
    """What a workload saw; what a late write explains has the time that this lasted."""
    others = [one for one in witnesses if one is not witness]
    late = [one for one in late_writes(witness.followed) if not _is_of(one, others)]
    for finding in _findings(witness):
        write = next((one for one in late if one.explains(finding)), None)
        yield replace(finding, seconds=write.end - write.begin) if write else finding


def late_writes(followed: Followed) -> list[LateWrite]:
    """When a container soon had the set before its last change again, and soon not any more."""
    found = []
    for one in range(3, len(followed.had)):
        first, second, again, after = followed.had[one - 3 : one + 1]
        repeated = (first.cpus, second.cpus) == (again.cpus, after.cpus)
        soon = again.at - second.at <= LATE_SECONDS and after.at - again.at <= BACK_SECONDS
        if repeated and soon:
            missed, extra = second.cpus - first.cpus, first.cpus - second.cpus
            found.append(LateWrite(again.at, after.at, missed, extra))
    return found


def _is_of(write: LateWrite, others: Sequence[Witness]) -> bool:
    """Whether CPUs of the earlier set were another container's own meanwhile."""
    return any(
        write.extra & cpus
        for other in others
        if other.is_exclusive(write.begin)
        for cpus in _had_between(other.followed, write.begin, write.end)
    )


def _had_between(followed: Followed, begin: float, end: float) -> Iterator[CpuSet]:
    before = [one for one in followed.had if one.at <= begin]
    yield from (one.cpus for one in before[-1:])
    yield from (one.cpus for one in followed.had if begin < one.at <= end)


def _departures(witness: Witness) -> Iterator[Departure]:
    return (one for one in witness.followed.departures if witness.is_exclusive(one.left_at))


def _findings(witness: Witness) -> Iterator[Finding]:
    pod, followed = witness.pod, witness.followed
    for reading in followed.shared:
        if witness.is_exclusive(reading.at):
            yield Finding(Kind.SHARED, pod, reading.cpus, reading.at)
    for reading in followed.had:
        if not reading.cpus:
            yield Finding(Kind.NO_CPUS, pod, reading.cpus, reading.at)
    for one in _departures(witness):
        if one.announced_at is None:
            yield Finding(Kind.UNANNOUNCED, pod, one.cpus, one.left_at)


def _was_told(
    finding: Finding, witness: Witness, announced: Sequence[Announcement], notice_seconds: float
) -> bool:
    """Whether the API server had it in time that these CPUs leave, since they had come."""
    if finding.kind is not Kind.UNANNOUNCED:
        return False
    earliest = _came_at(witness.followed, finding) - CLOCK_SECONDS
    latest = finding.at - notice_seconds + CLOCK_SECONDS
    told = [one for one in announced if one.pod == witness.pod and earliest <= one.at <= latest]
    return any(finding.cpus <= one.cpus for one in told)


def _came_at(followed: Followed, finding: Finding) -> float:
    """Since when the container had had all of these CPUs when they left."""
    found = finding.at
    for reading in reversed(followed.had):
        if reading.at < finding.at:
            if not finding.cpus <= reading.cpus:
                break
            found = reading.at
    return found
