"""When something is sent by OTLP, by the standard variables."""

import pytest

from numapin_daemon.telemetry.otlp_settings import METRICS, TRACES, OtlpError, wanted_signals

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
