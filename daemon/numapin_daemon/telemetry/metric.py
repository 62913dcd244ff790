"""What a metric is: its name, type, unit, labels and meaning. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Labels = tuple[str, ...]
"""The values of a metric's labels, in its own order; they identify one of its series."""

MOST_SERIES: Final = 100
"""Series of one metric, unless the metric has another limit."""

OTHER: Final = "other"
"""The value of each label beyond the limit."""

SECONDS_BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
"""From a plan of one node to a container whose image is pulled first."""


class Kind(StrEnum):
    """The types of metrics, named as in the text format of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: as in Prometheus; the unit is a part of it.
        kind: its type.
        meaning: one line for people.
        labels: the names of its labels.
        unit: as in UCUM, for OTLP; empty if it counts.
        begins_with: series that exist with the value 0 before anything is counted.
        buckets: of a histogram: the upper limits, ascending, without the infinite one.
        most_series: more series than these become one, with `OTHER` for each label.
    """

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    begins_with: tuple[Labels, ...] = ()
    buckets: tuple[float, ...] = ()
    most_series: int = MOST_SERIES


@dataclass(frozen=True, slots=True)
class Distribution:
    """The observations of one series of a histogram: how many fell into each bucket, and the sum.

    `counts` has one entry more than the metric has buckets, for what exceeds all of them.
    """

    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Family:
    """The present values of one metric, by labels."""

    metric: Metric
    values: tuple[tuple[Labels, float], ...] = ()
    distributions: tuple[tuple[Labels, Distribution], ...] = ()


Values = Mapping[Metric, Mapping[Labels, float]]
"""Present values by metric and labels."""
