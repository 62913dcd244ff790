"""Encodes what the SDK has collected, and sends it."""

from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import Counter, Histogram, ObservableCounter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from opentelemetry.sdk.metrics.view import (
    Aggregation,
    ExplicitBucketHistogramAggregation,
    ExponentialBucketHistogramAggregation,
)
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from numapin_daemon.telemetry.otlp.sender import OtlpSender
from numapin_daemon.telemetry.otlp.settings import MetricPreferences

_DELTA: Final[dict[str, tuple[type, ...]]] = {
    "cumulative": (),
    "delta": (Counter, Histogram, ObservableCounter),
    "lowmemory": (Counter, Histogram),
}
"""The instruments with delta temporality, by preference. Source: OpenTelemetry, "OTLP Exporter"."""

_AGGREGATIONS: Final[dict[str, type[Aggregation]]] = {
    "explicit_bucket_histogram": ExplicitBucketHistogramAggregation,
    "base2_exponential_bucket_histogram": ExponentialBucketHistogramAggregation,
}


class Metrics(MetricExporter):
    """Sends metrics; called in the SDK's thread."""

    def __init__(self, sender: OtlpSender, preferences: MetricPreferences) -> None:
        """Send nothing yet."""
        super().__init__(
            dict.fromkeys(_DELTA[preferences.temporality], AggregationTemporality.DELTA),
            {Histogram: _AGGREGATIONS[preferences.histogram]()},
        )
        self._sender = sender

    def export(
        self,
        metrics_data: MetricsData,
        timeout_millis: float = 0,  # noqa: ARG002 - the sender has its own
        **_: Any,
    ) -> MetricExportResult:
        """Send one collection."""
        sent = self._sender.send(encode_metrics(metrics_data).SerializeToString())
        return MetricExportResult.SUCCESS if sent else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 0) -> bool:  # noqa: ARG002 - nothing waits
        """Nothing waits here."""
        return True

    def shutdown(self, timeout_millis: float = 0, **_: Any) -> None:  # noqa: ARG002 - at once
        """Try again no longer."""
        self._sender.stop()


class Spans(SpanExporter):
    """Sends spans; called in the SDK's thread."""

    def __init__(self, sender: OtlpSender) -> None:
        """Send nothing yet."""
        self._sender = sender

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send one batch."""
        sent = self._sender.send(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS if sent else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Try again no longer."""
        self._sender.stop()
