"""Counts what a daemon does, and reads what is already there; may be asked in any thread."""

import logging
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Final, Protocol

from numapin_daemon.telemetry.metric import (
    OTHER,
    Distribution,
    Family,
    Kind,
    Labels,
    Metric,
    Values,
)

LOG: Final = logging.getLogger(__name__)

Source = Callable[[], Values]
"""Reads present values; called in the thread that collects."""


class Observer(Protocol):
    """Receives each observation of a histogram, beside the meter."""

    def __call__(self, metric: Metric, value: float, labels: Labels, /) -> None:
        """One observation; must be quick and must not raise."""


class Meter:
    """The values of the metrics of one table.

    A defect of a source costs its own metrics only: it is logged once for each kind of error.

    Attributes:
        table: every metric there is.
        observer: see `Observer`; None for none.
    """

    def __init__(self, table: Sequence[Metric]) -> None:
        """Start with the series that each metric begins with."""
        self.table = tuple(table)
        self.observer: Observer | None = None
        self._lock = Lock()
        self._sources: list[Source] = []
        self._failed: set[str] = set()
        self._numbers: dict[Metric, dict[Labels, float]] = {
            one: dict.fromkeys(one.begins_with, 0.0) for one in table if one.kind is Kind.COUNTER
        }
        self._histograms: dict[Metric, dict[Labels, _Histogram]] = {
            one: {labels: _Histogram(one.buckets) for labels in one.begins_with}
            for one in table
            if one.kind is Kind.HISTOGRAM
        }

    def read_from(self, source: Source) -> None:
        """Have `source` called for each collection; a later source overrides an earlier one."""
        self._sources.append(source)

    def add(self, counter: Metric, *labels: str, by: float = 1.0) -> None:
        """Add to a counter; `by` is not negative."""
        with self._lock:
            series = self._numbers[counter]
            key = _within_limit(counter, series.keys(), labels)
            series[key] = series.get(key, 0.0) + by

    def observe(self, histogram: Metric, value: float, *labels: str) -> None:
        """Add one observation to a histogram."""
        with self._lock:
            series = self._histograms[histogram]
            key = _within_limit(histogram, series.keys(), labels)
            if key not in series:
                series[key] = _Histogram(histogram.buckets)
            series[key].add(value)
        if self.observer is not None:
            self.observer(histogram, value, key)

    def collect(self) -> tuple[Family, ...]:
        """The present values of every metric, in the order of the table."""
        read = self._read()
        with self._lock:
            counted = {one: dict(series) for one, series in self._numbers.items()}
            distributions = {
                one: tuple((labels, found.value()) for labels, found in series.items())
                for one, series in self._histograms.items()
            }
        return tuple(
            Family(
                one,
                tuple({**counted.get(one, {}), **read.get(one, {})}.items()),
                distributions.get(one, ()),
            )
            for one in self.table
        )

    def _read(self) -> dict[Metric, dict[Labels, float]]:
        read: dict[Metric, dict[Labels, float]] = {}
        for source in self._sources:
            try:
                for metric, series in source().items():
                    kept = read.setdefault(metric, dict.fromkeys(metric.begins_with, 0.0))
                    for labels, value in series.items():
                        kept[_within_limit(metric, kept.keys(), labels)] = value
            except Exception as error:  # noqa: BLE001 - one source must not cost the others
                self._log_once(error)
        return read

    def _log_once(self, error: Exception) -> None:
        kind = type(error).__name__
        if kind not in self._failed:
            self._failed.add(kind)
            LOG.error("some metrics cannot be read", exc_info=error)


class _Histogram:
    """The observations of one series."""

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets, self._counts, self._total = buckets, [0] * (len(buckets) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value in the bucket with the lowest limit that is not below it."""
        self._counts[bisect_left(self._buckets, value)] += 1
        self._total += value

    def value(self) -> Distribution:
        return Distribution(tuple(self._counts), self._total)


def _within_limit(metric: Metric, known: Collection[Labels], labels: Labels) -> Labels:
    """The series to count in: `OTHER` if there are as many as the metric may have."""
    if labels in known or len(known) < metric.most_series:
        return labels
    return (OTHER,) * len(metric.labels)
