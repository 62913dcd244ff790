"""The report of a campaign: what all of them say, around the figures of each. Does no I/O."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Generic

from numapin_campaigns.frame.downtime import Downtime
from numapin_campaigns.frame.judge import Found, Verdict

SHOWN: Final = 20
LAST: Final = frozenset({"violations", "excused", "warnings", "problems"})
"""They have lines of their own at the end of a summary."""


@dataclass(frozen=True, kw_only=True)
class Report(ABC, Generic[Found]):
    """What is known of a run; a campaign adds its own.

    Attributes:
        seed: of the plan.
        verdict: what was found.
        downtimes: which part was down, and when.
        kills: how often each part was killed.
        noticed_seconds: for each time that the enforcer was stopped, after which time the standby
            noticed; None if it did not.
        problems: goals that were not reached and errors that were logged.
        warnings: the warnings of numapin, and how often each was logged.
        seconds: how long it took.
    """

    seed: int
    verdict: Verdict[Found]
    downtimes: Sequence[Downtime] = ()
    kills: Mapping[str, int] = field(default_factory=dict)
    noticed_seconds: Sequence[float | None] = ()
    problems: Sequence[str] = ()
    warnings: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether there was no violation and no problem."""
        return not (self.verdict.violations or self.problems)

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """The campaign's own figures."""

    @abstractmethod
    def shown(self, found: Sequence[Found]) -> list[dict[str, Any]]:
        """Violations, for people and programs."""

    def excused(self, found: Sequence[Found]) -> dict[str, Any]:
        """What was found of one kind and excused for one reason."""
        return {"count": len(found)}

    def kind(self, one: Found) -> str:
        """What it looks like."""
        return type(one).__name__

    def to_json(self) -> dict[str, Any]:
        """The figures; violations whole, up to a limit."""
        noticed = [None if one is None else round(one, 1) for one in self.noticed_seconds]
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            **self.figures(),
            "kills": dict(self.kills),
            "violations": self.shown(self.verdict.violations)[:SHOWN],
            "excused": self._excused(),
            "stopNoticedSeconds": noticed,
            "downSeconds": down_seconds(self.downtimes),
            "downtimes": [asdict(one) for one in self.downtimes],
            "warnings": dict(self.warnings),
            "problems": list(self.problems),
        }

    def summary(self) -> str:
        """The report as text."""
        return "\n".join(self._summary(self.to_json()))

    def _summary(self, figures: Mapping[str, Any]) -> Iterator[str]:
        """A line for each figure, but for those that are empty or long lists."""
        for name, one in figures.items():
            if name not in LAST and one not in ([], {}):
                if isinstance(one, Mapping):
                    yield f"{name}: {line(one)}"
                elif not (isinstance(one, list) and one and isinstance(one[0], Mapping)):
                    yield f"{name}: {one}"
        yield f"violations: {len(self.verdict.violations)}"
        yield from (f"  {line(one)}" for one in figures["violations"])
        yield from (f"excused: {kind}: {line(one)}" for kind, one in figures["excused"].items())
        yield from (f"warned {count} times: {text}" for text, count in self.warnings.items())
        yield from (f"PROBLEM: {problem}" for problem in self.problems)

    def _excused(self) -> dict[str, Any]:
        kinds: dict[str, list[Found]] = {}
        for excuse, one in self.verdict.excused:
            kinds.setdefault(f"{excuse}: {self.kind(one)}", []).append(one)
        return {kind: self.excused(found) for kind, found in sorted(kinds.items())}


def line(figures: Mapping[str, Any]) -> str:
    """Figures in one line."""
    return ", ".join(f"{name} {_text(one)}" for name, one in figures.items()) or "none"


def _text(value: object) -> str:
    return f"({line(value)})" if isinstance(value, Mapping) else str(value)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Count, median, 99th percentile (nearest rank) and greatest of sorted values."""
    if not values:
        return {}
    at = {"p50": len(values) // 2, "p99": int(len(values) * 0.99), "max": len(values) - 1}
    return {"count": len(values)} | {name: round(values[one], 2) for name, one in at.items()}


def down_seconds(downtimes: Sequence[Downtime]) -> dict[str, float]:
    """How long each part was down in all."""
    parts: dict[str, float] = {}
    for one in downtimes:
        parts[one.part] = round(parts.get(one.part, 0.0) + one.ready_at - one.killed_at, 1)
    return parts
