"""Collects metrics and traces with the SDK of OpenTelemetry.

It is imported only if an endpoint is set: it takes 3 MiB of memory. The SDK collects and encodes in
threads of its own; what cannot be sent is dropped. The exporters are ours, since those of
OpenTelemetry load requests, which takes 4 MiB more.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Final

from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.metrics import Meter as SdkMeter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.metric import Family, Kind, Labels, Metric
from numapin_daemon.telemetry.otlp.exporters import Metrics, Spans
from numapin_daemon.telemetry.otlp.sender import OtlpSender
from numapin_daemon.telemetry.otlp.settings import (
    METRICS,
    TRACES,
    MetricPreferences,
    OtlpSettings,
    SpanLimits,
)
from numapin_daemon.telemetry.span import Span, root_span_id, trace_id

SCOPE: Final = "numapin"

LOGGER: Final = "opentelemetry"
"""Warns of values of its variables that it does not understand."""

SHUTDOWN_MILLISECONDS: Final = 5000
"""How long the last values may take at the end of the process."""

SNAPSHOT_SECONDS: Final = 1.0
"""The instruments are asked one after the other; all of them answer from one collection."""


class OtlpExport:
    """Sends what is wanted until `shut_down`."""

    def __init__(self, service: str, attributes: Mapping[str, str], meter: Meter) -> None:
        """Send nothing yet.

        Args:
            service: the name of the service; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come
                before it and `attributes`.
            attributes: what is known of this process.
            meter: the metrics.
        """
        defaults = Resource({"service.name": service, **attributes})
        self._resource = defaults.merge(OTELResourceDetector().detect())
        logging.getLogger(LOGGER).setLevel(logging.ERROR)
        self._meter = meter
        self._metrics: MeterProvider | None = None
        self._traces: Traces | None = None

    def start(
        self,
        settings: Mapping[str, OtlpSettings],
        preferences: MetricPreferences,
        limits: SpanLimits,
    ) -> None:
        """Begin to send the signals for which there are settings.

        Raises:
            OtlpError: a certificate or key cannot be read.
            Exception: the SDK does not understand one of its variables. Nothing was sent.
        """
        senders = {signal: OtlpSender(one) for signal, one in settings.items()}
        if TRACES in senders:  # first: nothing is sent before there are spans
            self._traces = Traces(self._resource, Spans(senders[TRACES]), limits)
        if METRICS in senders:
            exporter = Metrics(senders[METRICS], preferences)
            reader = PeriodicExportingMetricReader(exporter)
            self._metrics = MeterProvider([reader], self._resource, shutdown_on_exit=False)
            Instruments(self._metrics.get_meter(SCOPE), self._meter)

    @property
    def traces(self) -> "Traces | None":
        """Takes spans; None if they are not wanted."""
        return self._traces

    def shut_down(self) -> None:
        """Send what is left, for some seconds at most."""
        if self._traces is not None:
            self._traces.shut_down()
        if self._metrics is not None:
            self._metrics.shutdown(SHUTDOWN_MILLISECONDS)


class Instruments:
    """Has the SDK read a meter's counters and gauges, and tells it each observation."""

    def __init__(self, sdk: SdkMeter, meter: Meter) -> None:
        self._meter = meter
        self._lock = Lock()
        self._taken: tuple[float, Mapping[Metric, Family]] | None = None
        self._histograms: dict[Metric, Histogram] = {}
        for one in meter.table:
            about = {"unit": one.unit or "1", "description": one.meaning}
            if one.kind is Kind.HISTOGRAM:
                self._histograms[one] = sdk.create_histogram(
                    one.name, explicit_bucket_boundaries_advisory=one.buckets, **about
                )
            elif one.kind is Kind.COUNTER:
                sdk.create_observable_counter(one.name, [self._reader(one)], **about)
            else:
                sdk.create_observable_gauge(one.name, [self._reader(one)], **about)
        meter.observer = self._record

    def _record(self, metric: Metric, value: float, labels: Labels) -> None:
        self._histograms[metric].record(value, dict(zip(metric.labels, labels, strict=True)))

    def _reader(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            for labels, value in self._families()[metric].values:
                yield Observation(value, dict(zip(metric.labels, labels, strict=True)))

        return read

    def _families(self) -> Mapping[Metric, Family]:
        with self._lock:
            now_seconds = time.monotonic()
            if self._taken is None or now_seconds - self._taken[0] >= SNAPSHOT_SECONDS:
                found = {one.metric: one for one in self._meter.collect()}
                self._taken = (now_seconds, found)
            return self._taken[1]


class Traces:
    """Sends spans whose ids are known beforehand; belongs to one thread.

    They have ended, so they are made as what a tracer would leave of them: half the memory.
    """

    def __init__(self, resource: Resource, exporter: Spans, limits: SpanLimits) -> None:
        self._resource, self._scope = resource, InstrumentationScope(SCOPE)
        self._sampler = TracerProvider(resource=resource, shutdown_on_exit=False).sampler
        self._ids = RandomIdGenerator()
        self._waiting = BatchSpanProcessor(
            exporter, max_queue_size=limits.queue, max_export_batch_size=limits.batch
        )

    def __call__(self, span: Span) -> None:
        """Send a span, unless the sampler leaves its whole trace out (OTEL_TRACES_SAMPLER)."""
        trace, root = trace_id(span.subject), root_span_id(span.subject)
        decision = self._sampler.should_sample(None, trace, span.name)
        if decision.decision is not Decision.RECORD_AND_SAMPLE:
            return
        flags = TraceFlags(TraceFlags.SAMPLED)
        own = root if span.is_root else self._ids.generate_span_id()
        made = ReadableSpan(
            span.name,
            SpanContext(trace, own, is_remote=False, trace_flags=flags),
            None if span.is_root else SpanContext(trace, root, is_remote=True, trace_flags=flags),
            self._resource,
            dict(span.attributes),
            kind=SpanKind.INTERNAL,
            start_time=span.begin_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )
        self._waiting.on_end(made)

    def shut_down(self) -> None:
        """Send what waits, for some seconds at most."""
        self._waiting.force_flush(SHUTDOWN_MILLISECONDS)
        self._waiting.shutdown()  # type: ignore[no-untyped-call]
