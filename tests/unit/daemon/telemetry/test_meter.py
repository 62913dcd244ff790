"""What is counted and read, and the limits of that."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import OTHER, Distribution, Family, Kind, Metric

COUNTED = Metric("c_total", Kind.COUNTER, "counted", ("reason",), begins_with=(("a",),))
LEVEL = Metric("level", Kind.GAUGE, "a level", ("reason",), begins_with=(("a",), ("b",)))
TIMES = Metric("t_seconds", Kind.HISTOGRAM, "times", buckets=(0.1, 1.0), begins_with=((),))
FEW = Metric("few_total", Kind.COUNTER, "few", ("x", "y"), most_series=2)
TABLE = (COUNTED, LEVEL, TIMES, FEW)


def families(meter: Meter) -> dict[Metric, Family]:
    return {one.metric: one for one in meter.collect()}


def numbers(meter: Meter, metric: Metric) -> dict[Any, float]:
    return dict(families(meter)[metric].values)


def test_a_counter_begins_at_zero_and_adds_up() -> None:
    meter = Meter(TABLE)
    assert numbers(meter, COUNTED) == {("a",): 0}
    meter.add(COUNTED, "a")
    meter.add(COUNTED, "b", by=2)
    meter.add(COUNTED, "b")
    assert numbers(meter, COUNTED) == {("a",): 1, ("b",): 3}


def test_a_gauge_is_read_at_each_collection_and_is_zero_where_nothing_was_read() -> None:
    levels = iter((5.0, 6.0))
    meter = Meter(TABLE)
    meter.read_from(lambda: {LEVEL: {("b",): next(levels)}})
    assert numbers(meter, LEVEL) == {("a",): 0, ("b",): 5}
    assert numbers(meter, LEVEL) == {("a",): 0, ("b",): 6}


def test_a_histogram_counts_a_limit_to_its_own_bucket() -> None:
    meter = Meter(TABLE)
    for value in (0.05, 0.1, 0.5, 1.0, 7.0):
        meter.observe(TIMES, value)
    assert families(meter)[TIMES].distributions == (((), Distribution((2, 2, 1), 8.65)),)


def test_an_observer_is_told_each_observation() -> None:
    meter, told = Meter(TABLE), list[Any]()
    meter.observer = lambda metric, value, labels: told.append((metric.name, value, labels))
    meter.observe(TIMES, 2.0)
    assert told == [("t_seconds", 2.0, ())]


def test_series_beyond_the_limit_become_one() -> None:
    meter = Meter(TABLE)
    for number in range(100):
        meter.add(FEW, str(number), "y")
    assert numbers(meter, FEW) == {("0", "y"): 1, ("1", "y"): 1, (OTHER, OTHER): 98}
    meter.add(FEW, "1", "y")
    assert numbers(meter, FEW)["1", "y"] == 2


def test_what_a_source_returns_has_the_same_limit() -> None:
    meter = Meter((few := Metric("few", Kind.GAUGE, "few", ("x",), most_series=3),))
    meter.read_from(lambda: {few: {(str(number),): 1.0 for number in range(1000)}})
    assert len(numbers(meter, few)) == 4


def test_a_broken_source_costs_its_own_metrics_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Any:
        raise RuntimeError("dictionary changed size during iteration")

    meter = Meter(TABLE)
    meter.read_from(broken)
    meter.read_from(lambda: {LEVEL: {("a",): 3.0}})
    with caplog.at_level(logging.ERROR):
        assert numbers(meter, LEVEL)["a",] == 3
        assert numbers(meter, LEVEL)["a",] == 3
    assert [one.message for one in caplog.records] == ["some metrics cannot be read"]


def test_families_are_in_the_order_of_the_table() -> None:
    def in_order() -> Iterator[str]:
        yield from (one.metric.name for one in Meter(TABLE).collect())

    assert list(in_order()) == ["c_total", "level", "t_seconds", "few_total"]
