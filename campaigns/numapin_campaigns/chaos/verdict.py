"""Which anomalies are violations by numapin, and which have another cause."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from numapin_campaigns.frame import judge as frame
from numapin_campaigns.frame.downtime import Downtime
from numapin_campaigns.frame.judge import Verdict
from numapin_campaigns.sampling.assignment_versions import AssignmentVersion, ContainerKey
from numapin_campaigns.sampling.samples import Anomaly, AnomalyKind, Overwrite

FIRST_PASS_SECONDS: Final = 1.0
"""From the standby's message until its first pass, on a busy machine."""

TAKEOVER_SECONDS: Final = 0.1
"""From the enforcer's death until the standby has its lock and has made its first pass."""

ORDINARY_SECONDS: Final = 5.0
"""How long a new cgroup may wait for enforcer or standby without real-time priority."""

THREAD_SECONDS: Final = 15.0
"""Until the enforcer has looked at threads and has said what it found.

Its resync of 10 s, and what a pass and a report may take on a busy machine.
"""


class Excuse(StrEnum):
    """Why an anomaly is not a violation."""

    INJECTED = "Injected"
    """The cgroup has the set that the run wrote into it, or into a parent before it was created."""
    WITHDRAWN = "Withdrawn"
    """The enforcer had taken a spec without this exclusive container; the sampler had not yet."""
    UNFENCED_NEW_POD = "UnfencedNewPod"
    """A cgroup of a Guaranteed pod, created while the enforcer was down; no program has started.

    It is beside the QoS classes, so it has the set of kubepods until the standby has fenced it.
    """
    ENFORCER_STOPPED = "EnforcerStopped"
    """A cgroup of a Guaranteed pod, created while the enforcer was stopped (SIGSTOP).

    It has the set of kubepods or of its pod until the standby has noticed that the enforcer hangs.
    """
    TAKEOVER = "Takeover"
    """A cgroup that was created just after the enforcer was killed; the standby takes over."""
    NOT_STARTED = "NotStarted"
    """A new container of the exclusive container's own pod; only the runtime's process is in it.

    It is created with the set of its pod, exclusive CPUs included, and narrowed before its program
    starts.
    """
    ORDINARY_PRIORITY = "OrdinaryPriority"
    """A new cgroup, while the enforcer ran and the kernel had refused it real-time priority.

    On busy CPUs it waits for one like every process, as docs/enforcing.md says.
    """
    NOT_LOOKED_AT = "NotLookedAt"
    """A thread that the enforcer need not have seen yet: it looks at threads at each resync.

    The time in which enforcer or API server were away does not count, nor that of a crowd: one look
    reaches 160 cgroups, and there are thousands then.
    """


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else is known of the run.

    `taken` holds when the enforcer logged that it had taken which generation, in order; `noticed`
    when the standby logged that the enforcer hangs. `realtime`: whether the kernel gives the
    enforcer real-time priority. `crowded`: from when until when there was a crowd of cgroups.
    """

    overwrites: Sequence[Overwrite]
    downtimes: Sequence[Downtime]
    taken: Sequence[tuple[float, int]]
    versions: Sequence[AssignmentVersion]
    noticed: Sequence[float] = ()
    realtime: bool = True
    crowded: Sequence[tuple[float, float]] = ()


def judge(anomalies: Iterable[Anomaly], evidence: Evidence) -> Verdict[Anomaly]:
    """Divide anomalies into violations and those that the run caused or that are permitted."""
    spec_of = {version.generation: version.spec_containers() for version in evidence.versions}
    return frame.judge(anomalies, lambda anomaly: _excuse(anomaly, evidence, spec_of))


def _excuse(
    anomaly: Anomaly, evidence: Evidence, spec_of: dict[int, frozenset[ContainerKey]]
) -> Excuse | None:
    """The first that holds."""
    down = evidence.downtimes
    reported = anomaly.kind is not AnomalyKind.TWO_EXCLUSIVE  # found without the NodeAssignment
    stops = (one for one in down if one.stopped)
    cases = (
        (Excuse.INJECTED, any(_injected(anomaly, one) for one in evidence.overwrites)),
        (Excuse.WITHDRAWN, reported and _withdrawn(anomaly, evidence.taken, spec_of)),
        (Excuse.UNFENCED_NEW_POD, any(_unfenced(anomaly, one) for one in down)),
        (Excuse.TAKEOVER, any(_in_takeover(anomaly, one) for one in down)),
        (Excuse.ENFORCER_STOPPED, any(_hung(anomaly, one, evidence) for one in stops)),
        (Excuse.NOT_STARTED, _not_started(anomaly)),
        (Excuse.ORDINARY_PRIORITY, not evidence.realtime and _is_new(anomaly)),
        (Excuse.NOT_LOOKED_AT, _not_looked_at(anomaly, evidence)),
    )
    return next((excuse for excuse, holds in cases if holds), None)


def _injected(anomaly: Anomaly, one: Overwrite) -> bool:
    end = float("inf") if one.ended_at is None else one.ended_at
    if anomaly.at > end or max(anomaly.at, anomaly.until) < one.written_at:
        return False
    if anomaly.path == one.path:
        return anomaly.found == one.value
    if anomaly.other == one.path:
        return True
    inherited = anomaly.path.startswith(f"{one.path}/") and anomaly.seen_at >= one.written_at
    return inherited and anomaly.found == one.value


def _withdrawn(
    anomaly: Anomaly,
    taken: Sequence[tuple[float, int]],
    spec_of: dict[int, frozenset[ContainerKey]],
) -> bool:
    """Whether the newest spec that the enforcer had taken then does not list the container.

    One that it took while the kernel was read counts as well: the read may have come after it. A
    generation that the sampler has not received (a list skips some) counts as the next one.
    """
    moments = (anomaly.at, max(anomaly.at, anomaly.until))
    before, after = (bisect_right(taken, (moment, 1 << 62)) for moment in moments)
    newest = [generation for _, generation in taken[max(0, before - 1) : after]]
    known = ([one for one in spec_of if one >= generation] for generation in newest)
    return any(later and anomaly.container not in spec_of[min(later)] for later in known)


def _not_started(anomaly: Anomaly) -> bool:
    of_its_pod = f"pod{anomaly.container[0]}" in anomaly.path.split("/")
    return anomaly.kind is AnomalyKind.OVERLAP and of_its_pod and not anomaly.started


def _is_new(anomaly: Anomaly) -> bool:
    """Whether the enforcer may not have come to the cgroup yet."""
    beside = anomaly.kind is AnomalyKind.OVERLAP
    return beside and anomaly.at <= anomaly.seen_at + ORDINARY_SECONDS


def _unfenced(anomaly: Anomaly, down: Downtime) -> bool:
    guaranteed = anomaly.path.startswith("pod")
    created = down.killed_at <= anomaly.seen_at <= down.ready_at
    fenced = anomaly.started or anomaly.at > down.ready_at
    return down.part == "enforcer" and guaranteed and created and not fenced


def _in_takeover(anomaly: Anomaly, down: Downtime) -> bool:
    killed = down.part == "enforcer" and not down.stopped
    beside = anomaly.kind is AnomalyKind.OVERLAP and anomaly.seen_at >= down.killed_at
    return killed and beside and anomaly.at <= down.killed_at + TAKEOVER_SECONDS


def _hung(anomaly: Anomaly, stop: Downtime, evidence: Evidence) -> bool:
    """Whether the enforcer was stopped, and the standby did not know that yet."""
    created = anomaly.path.startswith("pod") and anomaly.seen_at >= stop.killed_at
    noticed = (one for one in evidence.noticed if one >= stop.killed_at)
    pass_seconds = FIRST_PASS_SECONDS if evidence.realtime else ORDINARY_SECONDS
    known_at = min(noticed, default=stop.ready_at)
    return created and anomaly.at <= min(known_at + pass_seconds, stop.ready_at)


def _not_looked_at(anomaly: Anomaly, evidence: Evidence) -> bool:
    """Whether the enforcer could not look and report for long since the thread was seen."""
    parts = {"enforcer", "kube-apiserver"}
    away = [(one.killed_at, one.ready_at) for one in evidence.downtimes if one.part in parts]
    seconds, since = 0.0, anomaly.seen_at
    for began, ended in sorted((*away, *evidence.crowded)):
        seconds += max(0.0, min(began, anomaly.at) - since)
        since = max(since, ended)
    seconds += max(0.0, anomaly.at - since)
    return anomaly.kind is AnomalyKind.THREAD and seconds <= THREAD_SECONDS
