"""Metrics in the text format of Prometheus.

Source: Prometheus, "Exposition formats", version 0.0.4.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from threading import Lock
from typing import Final

from numapin_daemon.clock import Clock, SystemClock
from numapin_daemon.telemetry.metric import Distribution, Family, Labels

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LEAST_AGE_SECONDS: Final = 1.0
"""A page is made at most once in this time: anything that reaches the port can ask for it."""

_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_LABEL: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def expose(families: Iterable[Family]) -> str:
    """The text of a page; a metric without a series is left out."""
    return "".join(line for family in families for line in _lines(family))


class MetricsPage:
    """The page of one meter, for /metrics; may be asked for in any thread."""

    def __init__(self, collect: Callable[[], Iterable[Family]], clock: Clock | None = None) -> None:
        self._collect, self._clock = collect, clock or SystemClock()
        self._lock = Lock()
        self._made: tuple[float, str] | None = None

    def text(self) -> str:
        """The present values, or those of `LEAST_AGE_SECONDS` ago at most."""
        with self._lock:
            now_seconds = self._clock.monotonic()
            if self._made is None or now_seconds - self._made[0] >= LEAST_AGE_SECONDS:
                self._made = (now_seconds, expose(self._collect()))
            return self._made[1]


def _lines(family: Family) -> Iterator[str]:
    metric = family.metric
    if not (family.values or family.distributions):
        return
    yield f"# HELP {metric.name} {metric.meaning.translate(_HELP)}\n"
    yield f"# TYPE {metric.name} {metric.kind}\n"
    for labels, value in family.values:
        yield f"{metric.name}{_labels(metric.labels, labels)} {_number(value)}\n"
    for labels, found in family.distributions:
        yield from _histogram(family, labels, found)


def _histogram(family: Family, labels: Labels, found: Distribution) -> Iterator[str]:
    name, names = family.metric.name, family.metric.labels
    limits = (*map(_number, family.metric.buckets), "+Inf")
    for limit, count in zip(limits, accumulate(found.counts), strict=True):
        yield f"{name}_bucket{_labels((*names, 'le'), (*labels, limit))} {count}\n"
    yield f"{name}_sum{_labels(names, labels)} {_number(found.total)}\n"
    yield f"{name}_count{_labels(names, labels)} {sum(found.counts)}\n"


def _labels(names: Iterable[str], values: Labels) -> str:
    pairs = ",".join(
        f'{name}="{value.translate(_LABEL)}"' for name, value in zip(names, values, strict=True)
    )
    return f"{{{pairs}}}" if pairs else ""


def _number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
