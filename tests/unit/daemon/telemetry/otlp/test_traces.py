"""The spans that are sent, by their ids and what the sampler leaves out."""

from collections.abc import Sequence

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from numapin_daemon.telemetry.otlp.exporters import Spans
from numapin_daemon.telemetry.otlp.sdk import Traces
from numapin_daemon.telemetry.otlp.sender import OtlpSender
from numapin_daemon.telemetry.otlp.settings import TRACES, SpanLimits, otlp_settings
from numapin_daemon.telemetry.span import Span, root_span_id, trace_id

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
STEP = Span("plan", "a", 5_000, 7_000, {"k8s.pod.uid": "a", "numapin.generation": 2})
ROOT = Span("place pod", "a", 4_000, 8_000, {"k8s.pod.uid": "a"}, is_root=True)


class Kept(Spans):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__(OtlpSender(otlp_settings(ENDPOINT, TRACES)))
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


def sent(*spans: Span) -> list[ReadableSpan]:
    exporter = Kept()
    traces = Traces(Resource({"service.name": "it"}), exporter, SpanLimits(8, 8))
    for one in spans:
        traces(one)
    traces.shut_down()
    return exporter.spans


def test_the_spans_of_a_subject_are_in_one_trace_below_its_root() -> None:
    step, root = sent(STEP, ROOT)
    assert (step.name, step.start_time, step.end_time) == ("plan", 5_000, 7_000)
    assert dict(step.attributes or {}) == STEP.attributes
    assert step.resource.attributes["service.name"] == "it"
    for one in (step, root):
        assert one.context is not None
        assert one.context.trace_id == trace_id("a")
    assert root.context is not None
    assert root.context.span_id == root_span_id("a")
    assert root.parent is None
    assert step.parent is not None
    assert step.parent.span_id == root_span_id("a")


def test_each_step_has_an_id_of_its_own() -> None:
    ids = {one.context.span_id for one in sent(STEP, STEP, ROOT) if one.context is not None}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("sampler", "ratio", "count"),
    [("always_off", "", 0), ("traceidratio", "0.0", 0), ("parentbased_traceidratio", "1.0", 2)],
)
def test_a_trace_is_sent_as_a_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, sampler: str, ratio: str, count: int
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", ratio)
    assert len(sent(STEP, ROOT)) == count
