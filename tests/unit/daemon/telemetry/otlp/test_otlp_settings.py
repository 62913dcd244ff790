"""When something is sent by OTLP, by the standard variables."""

from functools import partial

import pytest

from numapin_daemon.telemetry.otlp.settings import (
    METRICS,
    TRACES,
    MetricPreferences,
    OtlpError,
    SpanLimits,
    metric_preferences,
    otlp_settings,
    span_limits,
    wanted_signals,
)

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, set()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, set()),
        ({"OTEL_SERVICE_NAME": "x"}, set()),
        (ENDPOINT, {METRICS, TRACES}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, {TRACES}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, {METRICS}),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, {METRICS}),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "otlp"}, {TRACES}),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, set()),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "false"}, {METRICS, TRACES}),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, {METRICS, TRACES}),
        (
            ENDPOINT
            | {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc", "OTEL_METRICS_EXPORTER": "none"},
            {TRACES},
        ),
    ],
    ids=str,
)
def test_a_signal_is_sent_where_an_endpoint_is_set(
    environment: dict[str, str], wanted: set[str]
) -> None:
    assert wanted_signals(environment) == wanted


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "set it to http/protobuf.*4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "set it to http/protobuf"),
        ("OTEL_METRICS_EXPORTER", "prometheus", "set it to otlp or none"),
    ],
)
def test_what_is_not_there_is_an_error_with_a_remedy(
    variable: str, value: str, remedy: str
) -> None:
    with pytest.raises(OtlpError, match=f"'{value}': {remedy}"):
        wanted_signals(ENDPOINT | {variable: value})


OTLP = "OTEL_EXPORTER_OTLP_"


def test_the_defaults() -> None:
    found = otlp_settings(ENDPOINT, TRACES)
    assert found.url == "http://collector:4318/v1/traces"
    assert (found.timeout_seconds, found.compression, found.headers) == (10.0, "none", {})
    assert (found.authority, found.certificate, found.key) == ("", "", "")
    expected = MetricPreferences("cumulative", "explicit_bucket_histogram")
    assert metric_preferences(ENDPOINT) == expected
    assert span_limits(ENDPOINT, 512) == SpanLimits(512, 32)


def test_a_signals_own_variable_comes_before_the_one_for_all() -> None:
    more = {
        f"{OTLP}TIMEOUT": "1",
        f"{OTLP}METRICS_TIMEOUT": "2500",
        f"{OTLP}COMPRESSION": "gzip",
        f"{OTLP}METRICS_HEADERS": "a=1",
        f"{OTLP}HEADERS": "b=2",
    }
    metrics, traces = (otlp_settings(ENDPOINT | more, one) for one in (METRICS, TRACES))
    assert (metrics.timeout_seconds, traces.timeout_seconds) == (2.5, 0.001)
    assert (metrics.headers, traces.headers) == ({"a": "1"}, {"b": "2"})
    assert metrics.compression == traces.compression == "gzip"


def test_the_headers_are_not_shown() -> None:
    assert "secret" not in repr(otlp_settings(ENDPOINT | {f"{OTLP}HEADERS": "a=secret"}, METRICS))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ENDPOINT", "collector:4318", "ENDPOINT is not http://HOST:PORT"),
        ("ENDPOINT", "http://", "ENDPOINT is not http://HOST:PORT"),
        ("ENDPOINT", "file:///etc/passwd", "ENDPOINT is not http://HOST:PORT"),
        ("METRICS_ENDPOINT", "http://a:port", "METRICS_ENDPOINT is not http://HOST:PORT"),
        ("ENDPOINT", "http://user:secret@a", "ENDPOINT is not http://HOST:PORT"),
        ("TIMEOUT", "10s", "TIMEOUT is '10s': set it to milliseconds"),
        ("TIMEOUT", "0", "TIMEOUT is '0': set it to milliseconds"),
        ("METRICS_TIMEOUT", "nan", "METRICS_TIMEOUT is 'nan': set it to milliseconds"),
        ("COMPRESSION", "zstd", "COMPRESSION is 'zstd': set it to none or gzip or deflate"),
        ("HEADERS", "a=1,secret", "HEADERS: header 2 is not NAME=VALUE"),
        ("HEADERS", "a=%ff", "HEADERS: header 1 is not NAME=VALUE"),
        ("HEADERS", "a=1%0d%0aHost: x", "HEADERS: header 1 is not NAME=VALUE"),
        ("CLIENT_KEY", "key.pem", "set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, too"),
    ],
)
def test_an_invalid_value_is_an_error_with_a_remedy(name: str, value: str, message: str) -> None:
    with pytest.raises(OtlpError, match=message) as raised:
        otlp_settings(ENDPOINT | {f"{OTLP}{name}": value}, METRICS)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (f"{OTLP}METRICS_TEMPORALITY_PREFERENCE", "sometimes", "cumulative or delta or lowmemory"),
        (f"{OTLP}METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "x", "explicit_bucket_histogram or base2"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many", "a number, at least 1"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0", "a number, at least 1"),
    ],
)
def test_other_invalid_values_are_errors_too(name: str, value: str, message: str) -> None:
    read = metric_preferences if "METRICS" in name else partial(span_limits, default_queue=512)
    with pytest.raises(OtlpError, match=f"{name} is '{value}': set it to {message}"):
        read({name: value})


def test_a_batch_is_not_more_than_may_wait() -> None:
    assert span_limits({"OTEL_BSP_MAX_QUEUE_SIZE": "10"}, 512) == SpanLimits(10, 10)
