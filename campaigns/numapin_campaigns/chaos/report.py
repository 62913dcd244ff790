"""The report of a chaos run: its figures, and what is wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from numapin_campaigns.chaos.cluster_state import Memory
from numapin_campaigns.chaos.plan import ChaosPlan
from numapin_campaigns.frame.report import Report, spread
from numapin_campaigns.sampling.assignment_versions import ContainerKey
from numapin_campaigns.sampling.samples import Anomaly, AnomalyKind, Overwrite, Samples
from numapin_campaigns.sampling.threads import LOOK_SECONDS

ROW_SECONDS: Final = 0.1
"""Anomalies that are farther apart count as two rows: at times the sampler itself must wait."""

THREAD_ROW_SECONDS: Final = 3 * LOOK_SECONDS
"""The same for threads, which are looked at less often."""


@dataclass(frozen=True, kw_only=True)
class PodsReport(Report[Anomaly]):
    """All that is known of a run.

    Attributes:
        plan: what was planned.
        samples: what the sampler recorded.
        overwrites: the cpusets that the run overwrote.
        ends: how many pods ended in which way.
        memory: of operator and enforcer, each second.
        drift_count: the external changes that the NodeAssignment counted during the run.
        files: of the enforcer before and after: open files and inotify watches.
        fenced: how many cpusets the standby wrote while the enforcer was dead.
        injected: how often the disk failed, what tenants created, wrote and ran.
        realtime: whether the enforcer had real-time priority.
        resizes: what the API server answered to resizes.
    """

    plan: ChaosPlan
    samples: Samples
    overwrites: Sequence[Overwrite]
    ends: Mapping[str, int]
    memory: Mapping[str, Sequence[Memory]]
    drift_count: int
    files: tuple[tuple[int, int], tuple[int, int]]
    fenced: int = 0
    injected: Mapping[str, int] = field(default_factory=dict)
    realtime: bool = True
    resizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether nothing was found, and each overwritten cpuset was reverted."""
        return super().good and not self.unreverted

    @property
    def pods_run(self) -> int:
        """Pods of which a container had a task in the kernel."""
        return len({one.pod_uid for one in self.samples.seen if one.container})

    @property
    def pods_ended(self) -> int:
        """Pods that ran and of which no container is left."""
        left = {one.pod_uid for one in self.samples.seen if one.container and one.gone_at is None}
        return self.pods_run - len(left)

    @property
    def exclusive_reported(self) -> int:
        """Containers that were reported exclusive at some time."""
        return len(
            {key for version in self.samples.versions for key, _ in version.reported_exclusive}
        )

    @property
    def exclusive_again(self) -> int:
        """How often a container was given CPUs of its own again after it had had none."""
        had: set[ContainerKey] = set()
        count, before = 0, frozenset[ContainerKey]()
        for version in self.samples.versions:
            now = version.spec_containers()
            count += len((now - before) & had)
            had |= now
            before = now
        return count

    @property
    def unreverted(self) -> list[Overwrite]:
        """Overwritten cpusets that were not reverted."""
        return [one for one in self.overwrites if one.outcome == "Remained"]

    @property
    def reverts(self) -> list[float]:
        """Seconds until each write was reverted, if the enforcer ran all that time; sorted."""
        return sorted(
            one.seconds for one in self.overwrites if one.outcome == "Reverted" and one.enforcer_up
        )

    def figures(self) -> dict[str, Any]:
        """Of pods, samples, overwrites and processes."""
        return {
            "pods": self.plan.pods,
            "podsRun": self.pods_run,
            "podsEnded": self.pods_ended,
            "containersRun": sum(bool(one.container) for one in self.samples.seen),
            "exclusiveReported": self.exclusive_reported,
            "ends": dict(self.ends),
            "resizes": dict(self.resizes),
            "exclusiveAgain": self.exclusive_again,
            **self.samples.to_json(),
            "realTimePriority": self.realtime,
            **self._reverts(),
            "fencedByTheStandby": self.fenced,
            "injected": dict(self.injected),
            "enforcerMiB": _memory(self.memory["enforcer"]),
            "operatorMiB": _memory(self.memory["operator"]),
            "enforcerFilesAndWatches": {"before": self.files[0], "after": self.files[1]},
        }

    def shown(self, found: Sequence[Anomaly]) -> list[dict[str, Any]]:
        """Anomalies of one kind, container and cgroup as one entry."""
        return grouped(found)

    def kind(self, one: Anomaly) -> str:
        """Its kind."""
        return one.kind

    def excused(self, found: Sequence[Anomaly]) -> dict[str, Any]:
        """How many, in how many cgroups, and the longest row of them."""
        return {
            "anomalies": len(found),
            "cgroups": len({anomaly.path for anomaly in found}),
            "longestSeconds": _longest(found),
        }

    def _reverts(self) -> dict[str, Any]:
        return {
            "overwrites": dict(Counter(f"{one.fault}: {one.outcome}" for one in self.overwrites)),
            "revertMilliseconds": spread([one * 1000 for one in self.reverts]),
            "revertsWhileTheEnforcerWasAway": sum(
                one.outcome == "Reverted" and not one.enforcer_up for one in self.overwrites
            ),
            "driftCount": self.drift_count,
        }


def grouped(anomalies: Sequence[Anomaly]) -> list[dict[str, Any]]:
    """Anomalies of one kind, container and cgroup as one entry, with its first and last time."""
    groups: dict[tuple[object, ...], list[Anomaly]] = {}
    for one in anomalies:
        groups.setdefault((one.kind, one.container, one.path, one.found), []).append(one)
    return [
        {
            "kind": found[0].kind.value,
            "container": "/".join(found[0].container),
            "cgroup": found[0].path,
            "found": bin(found[0].found),
            "other": found[0].other,
            "seenAt": round(found[0].seen_at, 4),
            "first": round(found[0].at, 4),
            "last": round(found[-1].at, 4),
            "anomalies": len(found),
        }
        for found in groups.values()
    ]


def _longest(anomalies: Sequence[Anomaly]) -> float:
    """Seconds of the longest row of anomalies of one kind in one cgroup."""
    times: dict[str, list[float]] = {}
    for one in anomalies:
        times.setdefault(one.path, []).append(one.at)
    threads = any(one.kind is AnomalyKind.THREAD for one in anomalies)
    gap = THREAD_ROW_SECONDS if threads else ROW_SECONDS
    longest = 0.0
    for found in times.values():
        start = found[0]
        for now, later in pairwise((*found, float("inf"))):
            longest = max(longest, now - start)
            start = later if later - now > gap else start
    return round(longest, 3)


def _memory(readings: Sequence[Memory]) -> dict[str, Any]:
    """The first and the last reading, the greatest of all, and the greatest of each minute."""
    if not readings:
        return {}
    minutes: dict[int, float] = {}
    for one in readings:
        minute = int((one.at - readings[0].at) // 60)
        minutes[minute] = max(minutes.get(minute, 0.0), one.mib)
    return {
        "first": round(readings[0].mib, 1),
        "last": round(readings[-1].mib, 1),
        "greatest": round(max(one.mib for one in readings), 1),
        "processes": len({one.pid for one in readings}),
        "eachMinute": [round(mib, 1) for mib in minutes.values()],
    }
