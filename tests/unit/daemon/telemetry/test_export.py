"""No variable of OpenTelemetry ends a daemon, or has it wait: it goes on and says what is wrong."""

import os
import sys
import threading
from contextlib import AsyncExitStack

import pytest

from numapin_daemon.telemetry.export import REFUSED, exporting
from numapin_daemon.telemetry.meter import Meter
from numapin_daemon.telemetry.process_table import OTLP_REFUSED, PROCESS_METRICS
from numapin_daemon.telemetry.span import Span

OTLP = "OTEL_EXPORTER_OTLP_"
ENDPOINT = {f"{OTLP}ENDPOINT": "http://127.0.0.1:9", f"{OTLP}TIMEOUT": "1"}
SPAN = Span("plan", "a", 5_000, 7_000, {"k8s.pod.uid": "a"})


async def export(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> tuple[str, bool, float]:
    """Run with these variables; returns the problem, whether spans are taken, and the metric."""
    for name, value in {**ENDPOINT, **variables}.items():
        monkeypatch.setenv(name, value)
    meter = Meter(PROCESS_METRICS)
    async with exporting("it", {}, meter, os.environ, 16) as sent:
        if sent.traces is not None:
            sent.traces(SPAN)
        (refused,) = [one for one in meter.collect() if one.metric is OTLP_REFUSED]
        return sent.problem, sent.traces is not None, dict(refused.values)[()]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{OTLP}PROTOCOL", "grpc"),
        (f"{OTLP}TRACES_PROTOCOL", "http/json"),
        (f"{OTLP}ENDPOINT", "collector:4317"),
        (f"{OTLP}METRICS_ENDPOINT", "http://[::1"),
        (f"{OTLP}HEADERS", "no value"),
        (f"{OTLP}COMPRESSION", "zstd"),
        (f"{OTLP}TIMEOUT", "10s"),
        (f"{OTLP}CLIENT_KEY", "/nowhere/key.pem"),
        (f"{OTLP}METRICS_TEMPORALITY_PREFERENCE", "sometimes"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_ATTRIBUTE_COUNT_LIMIT", "many"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
    ],
)
async def test_a_variable_that_cannot_be_followed_is_named_and_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    before = threading.active_count()
    problem, takes_spans, metric = await export(monkeypatch, {name: value})
    assert threading.active_count() == before, "nothing is left that sends"
    assert problem.startswith(REFUSED)
    assert (takes_spans, metric) == (False, 1.0)
    assert REFUSED in caplog.messages


async def test_a_certificate_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {f"{OTLP}ENDPOINT": "https://127.0.0.1:9", f"{OTLP}CERTIFICATE": "/nowhere/ca.pem"}
    assert "/nowhere/ca.pem cannot be loaded" in (await export(monkeypatch, given))[0]


async def test_a_package_that_is_missing_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "numapin_daemon.telemetry.otlp.sdk", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    problem, takes_spans, _ = await export(monkeypatch, {})
    assert problem.endswith("pip install 'numapin[otlp]'")
    assert not takes_spans


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_SAMPLER_ARG", "half"),
        ("OTEL_RESOURCE_ATTRIBUTES", "no value,=,a"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "often"),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
        ("OTEL_PROPAGATORS", "none such"),
        ("OTEL_LOG_LEVEL", "loud"),
        ("OTEL_NOBODY_KNOWS_IT", "1"),
    ],
)
async def test_a_variable_that_the_sdk_ignores_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert await export(monkeypatch, {name: value}) == ("", True, 0.0)


async def test_without_an_endpoint_nothing_is_sent_and_nothing_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(f"{OTLP}ENDPOINT", raising=False)
    async with AsyncExitStack() as stack:
        sent = await stack.enter_async_context(exporting("it", {}, Meter(()), {}, 16))
        assert (sent.traces, sent.problem) == (None, "")
