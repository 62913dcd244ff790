"""Figures: values of several runs, in one row of a table and in JSON."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

HEADER = f"{'':<46}{'n':>5}{'min':>10}{'p50':>10}{'p99':>10}{'max':>10}  {'p50 of runs':<17}"


@dataclass(frozen=True)
class Figure:
    """One thing measured.

    Attributes:
        name: what was measured.
        unit: of every value: ms, s, %, MiB.
        runs: the values of each run; `inf` stands for an event that did not happen in time.
        limit: the budget, or the time limit.
    """

    name: str
    unit: str
    runs: Sequence[Sequence[float]]
    limit: str = ""

    @property
    def values(self) -> list[float]:
        """The values of all runs, sorted."""
        return sorted(value for run in self.runs for value in run)

    def to_json(self) -> dict[str, Any]:
        """Summary and values for JSON; `inf` becomes null."""
        return {
            "name": self.name,
            "unit": self.unit,
            "limit": self.limit,
            "summary": {key: _finite(value) for key, value in self.summary().items()},
            "runs": [[_finite(round(value, 4)) for value in run] for run in self.runs],
        }

    def summary(self) -> dict[str, float]:
        """Minimum, median, 99th percentile (nearest rank), maximum."""
        ordered = self.values
        return {
            "count": len(ordered),
            "min": ordered[0],
            "p50": statistics.median(ordered),
            "p99": ordered[max(0, math.ceil(len(ordered) * 0.99) - 1)],
            "max": ordered[-1],
        }

    def row(self) -> str:
        """One line of the table under `HEADER`."""
        found = self.summary()
        columns = "".join(f"{_text(found[key]):>10}" for key in ("min", "p50", "p99", "max"))
        middles = [statistics.median(run) for run in self.runs if run]
        spread = f"{_text(min(middles))} - {_text(max(middles))}" if len(middles) > 1 else ""
        name = f"{self.name}, {self.unit}"
        return f"{name:<46}{found['count']:>5.0f}{columns}  {spread:<17}{self.limit}".rstrip()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _text(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if value else "0"


def in_runs(values: Sequence[float], count: int) -> list[list[float]]:
    """The values in `count` runs of about equal length, in the same order."""
    edges = [round(len(values) * number / count) for number in range(count + 1)]
    return [list(values[start:end]) for start, end in pairwise(edges)]
