"""The report of a chaos run with moves: its figures, and what is wrong."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numapin_campaigns.frame.plan import Fault
from numapin_campaigns.frame.report import Report, spread
from numapin_campaigns.moves.judgement import Finding, Kind, Witness
from numapin_campaigns.moves.plan import Change, Move, MovesPlan, Resize, Stage
from numapin_campaigns.workload.notice import Departure


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


@dataclass(frozen=True, kw_only=True)
class MovesReport(Report[Finding]):
    """All that is known of a run.

    Attributes:
        plan: what was planned.
        rounds: those that came to their end.
        witnesses: what the workloads saw.
        departures: those of exclusive CPUs.
        drift_causes: the external changes that the NodeAssignment counted.
    """

    plan: MovesPlan
    rounds: Sequence[MadeRound]
    witnesses: Sequence[Witness]
    departures: Sequence[Departure] = ()
    drift_causes: Mapping[str, int] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """Of rounds, faults, departures and workloads."""
        faults = [one for each in self.rounds for one in each.faults]
        notice = [one.notice_seconds for one in self.departures if one.announced_at is not None]
        least = {"least": round(min(notice), 2)} if notice else {}
        return {
            "rounds": {"planned": len(self.plan.rounds), "made": len(self.rounds)},
            "moves": sum(isinstance(one.change, Move) for one in self.rounds),
            "resizes": sum(isinstance(one.change, Resize) for one in self.rounds),
            "faults": dict(Counter(fault.name for fault, _ in faults)),
            "faultsAtStages": dict(Counter(stage.name.capitalize() for _, stage in faults)),
            "shared": sum(one.kind is Kind.SHARED for one in self.verdict.violations),
            "departures": len(self.departures),
            "announced": len(notice),
            "noticeSeconds": {**least, **spread(sorted(notice))},
            "workloads": {
                one.pod: {
                    "asked": one.followed.asked,
                    "longestGapSeconds": round(one.followed.longest_gap_seconds, 3),
                }
                for one in self.witnesses
            },
            "driftCauses": dict(self.drift_causes),
            "eachRound": [one.to_json() for one in self.rounds],
        }

    def shown(self, found: Sequence[Finding]) -> list[dict[str, Any]]:
        """Each of them."""
        return [one.to_json() for one in found]

    def kind(self, one: Finding) -> str:
        """Its kind."""
        return one.kind

    def excused(self, found: Sequence[Finding]) -> dict[str, Any]:
        """How many, and how long the longest lasted."""
        longest = max(one.seconds or 0.0 for one in found)
        return {"count": len(found), "longestSeconds": round(longest, 3)}
