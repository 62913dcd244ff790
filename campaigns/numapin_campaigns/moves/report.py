"""The report of a chaos run with moves: its figures, and what is wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from numapin_campaigns.chaos.figures import down_seconds, line, spread
from numapin_campaigns.moves.judgement import Verdict, Witness
from numapin_campaigns.moves.plan import Change, Fault, Move, MovesPlan, Resize, Stage
from numapin_campaigns.observation.samples import Downtime

SHOWN: Final = 20


@dataclass(frozen=True)
class MadeRound:
    """A round that was made. Times are seconds on the clock of the virtual machine."""

    number: int
    change: Change
    faults: tuple[tuple[Fault, Stage], ...]
    began: float
    ended: float

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "number": self.number,
            "change": str(self.change),
            "faults": [f"{fault} at {stage.name.capitalize()}" for fault, stage in self.faults],
            "seconds": round(self.ended - self.began, 1),
            "beganGuestSeconds": round(self.began, 1),
        }


@dataclass(frozen=True)
class MovesReport:
    """All that is known of a run.

    Attributes:
        plan: what was planned.
        rounds: those that came to their end.
        witnesses: what the workloads saw.
        verdict: what of it must not be.
        downtimes: which part was down, and when.
        kills: how often each part was killed.
        drift_causes: the external changes that the NodeAssignment counted.
        noticed_seconds: for each time that the enforcer was stopped, after which time the standby
            noticed; None if it did not.
        problems: ends that were not reached, containers that were restarted, errors in logs.
        warnings: the warnings of numapin, and how often each was logged.
        seconds: from the first round to the last.
    """

    plan: MovesPlan
    rounds: Sequence[MadeRound]
    witnesses: Sequence[Witness]
    verdict: Verdict
    downtimes: Sequence[Downtime]
    kills: Mapping[str, int]
    drift_causes: Mapping[str, int]
    noticed_seconds: Sequence[float | None]
    problems: Sequence[str]
    warnings: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether there was no violation and no problem."""
        return not (self.verdict.violations or self.problems)

    def to_json(self) -> dict[str, Any]:
        """The figures; violations whole, up to a limit."""
        faults = [one for each in self.rounds for one in each.faults]
        departures = self.verdict.departures
        notice = [one.notice_seconds for one in departures if one.announced_at is not None]
        return {
            "seed": self.plan.seed,
            "rounds": {"planned": len(self.plan.rounds), "made": len(self.rounds)},
            "seconds": round(self.seconds, 1),
            "moves": sum(isinstance(one.change, Move) for one in self.rounds),
            "resizes": sum(isinstance(one.change, Resize) for one in self.rounds),
            "faults": dict(Counter(fault.value for fault, _ in faults)),
            "faultsAtStages": dict(Counter(stage.name.capitalize() for _, stage in faults)),
            "kills": dict(self.kills),
            "violations": [one.to_json() for one in self.verdict.violations[:SHOWN]],
            "excused": self._excused(),
            "shared": sum(one.kind.value == "Shared" for one in self.verdict.violations),
            "departures": len(departures),
            "announced": len(notice),
            "noticeSeconds": {"least": round(min(notice), 2), **spread(sorted(notice))}
            if notice
            else {},
            "workloads": {
                one.pod: {
                    "asked": one.followed.asked,
                    "longestGapSeconds": round(one.followed.longest_gap_seconds, 3),
                }
                for one in self.witnesses
            },
            "stopNoticedSeconds": [
                None if one is None else round(one, 1) for one in self.noticed_seconds
            ],
            "downSeconds": down_seconds(self.downtimes),
            "downtimes": [asdict(one) for one in self.downtimes],
            "driftCauses": dict(self.drift_causes),
            "warnings": dict(self.warnings),
            "problems": list(self.problems),
            "eachRound": [one.to_json() for one in self.rounds],
        }

    def _excused(self) -> dict[str, Any]:
        found: dict[str, list[float]] = {}
        for excuse, one in self.verdict.excused:
            found.setdefault(f"{excuse}: {one.kind}", []).append(one.seconds or 0.0)
        return {
            name: {"count": len(seconds), "longestSeconds": round(max(seconds), 3)}
            for name, seconds in sorted(found.items())
        }


def summary(report: MovesReport) -> str:
    """The report as text."""
    figures = report.to_json()
    shown = [
        f"seed {figures['seed']}: {figures['rounds']['made']} of {figures['rounds']['planned']} "
        f"rounds in {figures['seconds']} s: {figures['moves']} moves, {figures['resizes']} resizes",
        f"faults: {line(figures['faults'])}",
        f"faults at stages: {line(figures['faultsAtStages'])}",
        f"killed: {line(figures['kills'])}",
        f"violations: {len(report.verdict.violations)}",
        *(f"  {line(one)}" for one in figures["violations"]),
        *(f"excused: {kind}: {line(one)}" for kind, one in figures["excused"].items()),
        f"an exclusive CPU was shared: {figures['shared']} times",
        f"CPUs left: {figures['departures']} times, announced before: {figures['announced']}; "
        f"notice (s): {line(figures['noticeSeconds'])}",
        *(f"workload of {pod}: {line(one)}" for pod, one in figures["workloads"].items()),
        f"stopped enforcer noticed after (s): {figures['stopNoticedSeconds']}",
        f"down (s): {line(figures['downSeconds'])}",
        f"external changes counted: {line(figures['driftCauses'])}",
        *(f"warned {count} times: {text}" for text, count in report.warnings.items()),
        *(f"PROBLEM: {problem}" for problem in report.problems),
    ]
    return "\n".join(shown)
