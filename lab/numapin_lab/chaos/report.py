"""Pure: what a chaos run came to: figures, and what is wrong with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from numapin_lab.chaos.observation.cluster_state import Memory
from numapin_lab.chaos.observation.samples import Downtime, Moment, Overwrite, Samples
from numapin_lab.chaos.observation.verdict import Verdict
from numapin_lab.chaos.plan import ChaosPlan

SHOWN: Final = 20
ROW_SECONDS: Final = 0.1
"""Moments that are farther apart are two rows: at times the sampler itself must wait."""

KUBELET: Final = """For comparison, the static policy of kubelet 1.36: an exclusive CPU stays shared
for 2.2 / 6.2 / 9.6 s; two owners of one CPU for 1.7 s after a forced deletion (3 of 3); overwritten
sets are neither repaired in 45 s nor reported."""


@dataclass(frozen=True)
class Report:
    """A run, all of it.

    Attributes:
        plan: what was to be done.
        samples: what the sampler saw.
        verdict: its moments, judged.
        overwrites: what was written by hand.
        downtimes: what was away, and when.
        kills: how often each part was killed.
        ends: how many pods went in which way.
        memory: of operator and enforcer, each second.
        drift_count: by how much the NodeAssignment's grew.
        files: of the enforcer before and after: open files and inotify watches.
        fenced: how many cpusets the standby wrote while the enforcer was dead.
        problems: what was not as it should be at the end, for people.
        warnings: what numapin warned of, and how often.
        seconds: from the first pod until everything was settled.
    """

    plan: ChaosPlan
    samples: Samples
    verdict: Verdict
    overwrites: Sequence[Overwrite]
    downtimes: Sequence[Downtime]
    kills: Mapping[str, int]
    ends: Mapping[str, int]
    memory: Mapping[str, Sequence[Memory]]
    drift_count: int
    files: tuple[tuple[int, int], tuple[int, int]]
    problems: Sequence[str]
    fenced: int = 0
    warnings: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def pods_run(self) -> int:
        """Pods of which a container had a task, as the kernel says."""
        return len({one.pod_uid for one in self.samples.seen if one.container})

    @property
    def pods_ended(self) -> int:
        """Those of them of which every container is gone again."""
        left = {one.pod_uid for one in self.samples.seen if one.container and one.gone_at is None}
        return self.pods_run - len(left)

    @property
    def owners_run(self) -> int:
        """Containers that were reported exclusive at some time."""
        return len({owner for version in self.samples.versions for owner, _ in version.claims})

    @property
    def unrepaired(self) -> list[Overwrite]:
        """What was overwritten and stayed so."""
        return [one for one in self.overwrites if one.outcome == "Kept"]

    @property
    def repairs(self) -> list[float]:
        """Seconds from the write to the repair, where the enforcer ran all the while; sorted."""
        return sorted(
            one.seconds for one in self.overwrites if one.outcome == "Repaired" and one.enforcer_up
        )

    def to_json(self) -> dict[str, Any]:
        """The figures; violations whole, up to a limit."""
        repairs = self.repairs
        return {
            "seed": self.plan.seed,
            "pods": self.plan.pods,
            "seconds": round(self.seconds, 1),
            "podsRun": self.pods_run,
            "podsEnded": self.pods_ended,
            "containersRun": sum(bool(one.container) for one in self.samples.seen),
            "ownersReported": self.owners_run,
            "ends": dict(self.ends),
            "kills": dict(self.kills),
            **self.samples.to_json(),
            "violations": grouped(self.verdict.violations),
            "excused": self._excused(),
            "overwrites": dict(Counter(f"{one.fault}: {one.outcome}" for one in self.overwrites)),
            "repairMilliseconds": _spread([one * 1000 for one in repairs]),
            "repairsWhileTheEnforcerWasAway": sum(
                one.outcome == "Repaired" and not one.enforcer_up for one in self.overwrites
            ),
            "driftCount": self.drift_count,
            "fencedByTheStandby": self.fenced,
            "enforcerMiB": _memory(self.memory["enforcer"]),
            "operatorMiB": _memory(self.memory["operator"]),
            "enforcerFilesAndWatches": {"before": self.files[0], "after": self.files[1]},
            "downSeconds": _down(self.downtimes),
            "warnings": dict(self.warnings),
            "problems": list(self.problems),
        }

    def _excused(self) -> dict[str, Any]:
        by_kind: dict[str, list[Moment]] = {}
        for excuse, moment in self.verdict.excused:
            by_kind.setdefault(f"{excuse}: {moment.kind}", []).append(moment)
        return {
            kind: {
                "moments": len(moments),
                "cgroups": len({moment.path for moment in moments}),
                "longestSeconds": _longest(moments),
            }
            for kind, moments in sorted(by_kind.items())
        }


def grouped(moments: Sequence[Moment]) -> list[dict[str, Any]]:
    """Moments of the same kind, owner and cgroup as one, with its first and last instant."""
    groups: dict[tuple[object, ...], list[Moment]] = {}
    for one in moments:
        groups.setdefault((one.kind, one.owner, one.path, one.found), []).append(one)
    return [
        {
            "kind": found[0].kind.value,
            "owner": "/".join(found[0].owner),
            "cgroup": found[0].path,
            "found": bin(found[0].found),
            "other": found[0].other,
            "bornAt": round(found[0].born_at, 4),
            "first": round(found[0].at, 4),
            "last": round(found[-1].at, 4),
            "moments": len(found),
        }
        for found in list(groups.values())[:SHOWN]
    ]


def summary(report: Report) -> str:
    """A page for people."""
    figures = report.to_json()
    shown = [
        f"seed {figures['seed']}: {figures['podsRun']} pods ran, {figures['podsEnded']} ended "
        f"in {figures['seconds']} s; {figures['ownersReported']} containers owned a CPU",
        f"ends: {_line(figures['ends'])}",
        f"killed: {_line(figures['kills'])}",
        f"samples: {figures['samples']}, with an owner {figures['ownedSamples']}; gap p99 "
        f"{figures['gapP99Seconds'] * 1000:.1f} ms, longest "
        f"{figures['longestGapSeconds'] * 1000:.0f} ms",
        f"violations: {len(report.verdict.violations)}",
        *(f"  {_line(one)}" for one in figures["violations"]),
        *(f"excused: {kind}: {_line(one)}" for kind, one in figures["excused"].items()),
        f"overwritten: {_line(figures['overwrites'])}; drift counted {figures['driftCount']}",
        f"written by the standby: {figures['fencedByTheStandby']}",
        f"repaired after (ms): {_line(figures['repairMilliseconds'])}",
        f"enforcer MiB: {_line(figures['enforcerMiB'])}",
        f"operator MiB: {_line(figures['operatorMiB'])}",
        f"enforcer files and watches: {_line(figures['enforcerFilesAndWatches'])}",
        f"away (s): {_line(figures['downSeconds'])}",
        *(f"warned {count} times: {text}" for text, count in report.warnings.items()),
        *(f"PROBLEM: {problem}" for problem in report.problems),
        KUBELET,
    ]
    return "\n".join(shown)


def _line(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in figures.items()) or "none"


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Count, median, 99th percentile (nearest rank) and greatest of sorted values."""
    if not values:
        return {}
    at = {"p50": len(values) // 2, "p99": int(len(values) * 0.99), "max": len(values) - 1}
    return {"count": len(values)} | {name: round(values[one], 2) for name, one in at.items()}


def _longest(moments: Sequence[Moment]) -> float:
    """Seconds of the longest row of moments of one cgroup."""
    times: dict[str, list[float]] = {}
    for one in moments:
        times.setdefault(one.path, []).append(one.at)
    longest = 0.0
    for found in times.values():
        start = found[0]
        for now, later in pairwise((*found, float("inf"))):
            longest = max(longest, now - start)
            start = later if later - now > ROW_SECONDS else start
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


def _down(downtimes: Sequence[Downtime]) -> dict[str, float]:
    parts: dict[str, float] = {}
    for one in downtimes:
        parts[one.part] = round(parts.get(one.part, 0.0) + one.ready_at - one.killed_at, 1)
    return parts
