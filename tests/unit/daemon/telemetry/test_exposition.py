"""The text format of Prometheus, as promtool reads it, and how often it is written."""

import math
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numapin_daemon.telemetry.exposition import LEAST_AGE_SECONDS, MetricsPage, expose
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import Distribution, Family, Kind, Metric
from numapin_daemon.telemetry.process import read_process
from numapin_daemon.telemetry.process_table import PROCESS_METRICS
from numapin_daemon.version import VERSION
from support.fakes.manual_clock import ManualClock
from support.real.telemetry.prometheus import lint, parse

GAUGE = Metric("level", Kind.GAUGE, "A\nlevel \\ with", ("name",))
TIMES = Metric("t_seconds", Kind.HISTOGRAM, "Times.", ("name",), buckets=(0.5, 1.0))

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool: run lab/system-packages"
)


def test_a_page_is_as_prometheus_describes_it() -> None:
    families = (
        Family(GAUGE, (((' "a"\n\\',), 1.5), (("",), 3e20), (("nan",), math.nan))),
        Family(TIMES, (), ((("x",), Distribution((1, 0, 2), 4.25)),)),
        Family(Metric("without_series", Kind.COUNTER, "Nothing.")),
    )
    assert expose(families) == (
        "# HELP level A\\nlevel \\\\ with\n"
        "# TYPE level gauge\n"
        'level{name=" \\"a\\"\\n\\\\"} 1.5\n'
        'level{name=""} 300000000000000000000\n'
        'level{name="nan"} NaN\n'
        "# HELP t_seconds Times.\n"
        "# TYPE t_seconds histogram\n"
        't_seconds_bucket{name="x",le="0.5"} 1\n'
        't_seconds_bucket{name="x",le="1"} 1\n'
        't_seconds_bucket{name="x",le="+Inf"} 3\n'
        't_seconds_sum{name="x"} 4.25\n'
        't_seconds_count{name="x"} 3\n'
    )


@needs_promtool
def test_promtool_reads_every_value_and_label() -> None:
    numbers = (0.0, -1.0, 1e-300, 1e300, math.inf, -math.inf, math.nan)
    labels = ("", '"', "\\", "\n", "é", "}", " ", "\x00", 'a="b",c')
    values = (((f"{label}{number}",), number) for label in labels for number in numbers)
    assert lint(expose((Family(GAUGE, tuple(values)),))) == {}


@given(st.floats(allow_nan=False))
def test_a_number_keeps_its_value(value: float) -> None:
    number = expose((Family(Metric("x", Kind.GAUGE, "x"), (((), value),)),)).split()[-1]
    assert float(number) == value


def test_this_process_is_measured() -> None:
    meter = Meter(PROCESS_METRICS)
    meter.read_from(read_process)
    found = parse(expose(meter.collect()))
    assert found["process_resident_memory_bytes"][""] > 1 << 20
    assert found["process_open_fds"][""] >= 3
    assert found["process_start_time_seconds"][""] > 1.7e9
    assert found["process_cpu_seconds_total"][""] > 0
    assert found["numapin_build_info"] == {f'version="{VERSION}"': 1}


def test_a_page_is_made_once_in_a_while_however_often_it_is_asked_for() -> None:
    clock, made = ManualClock(), 0

    def collect() -> tuple[Family, ...]:
        nonlocal made
        made += 1
        return (Family(Metric("x", Kind.GAUGE, "x"), (((), float(made)),)),)

    page = MetricsPage(collect, clock)
    assert page.text().endswith("x 1\n")
    clock.stand_still(LEAST_AGE_SECONDS / 2)
    assert page.text().endswith("x 1\n")
    clock.stand_still(LEAST_AGE_SECONDS / 2)
    assert page.text().endswith("x 2\n")
